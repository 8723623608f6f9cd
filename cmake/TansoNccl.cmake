# SPDX-License-Identifier: MIT
# Transfers between GPUs of several processes by NCCL: a shared object of its own beside libtanso.so, loaded where ranks
# have something on GPUs. It needs headers alone, NCCL's and CUDA's; libraries are opened by name, and nothing of
# libtanso.so is used.

option(TANSO_WITH_NCCL "Build the NCCL plug-in where nccl.h and CUDA's headers are found" ON)
set(TANSO_NCCL "off: TANSO_WITH_NCCL is off")

if(TANSO_WITH_NCCL)
    set(TANSO_NCCL "off: nccl.h or cuda_runtime.h not found (CUDA's toolkit; or set TANSO_CUDA_ROOT)")
    foreach(header nccl cuda_runtime)
        string(TOUPPER CUDA_${header}_INCLUDE_DIR folder)
        find_path(${folder} ${header}.h
            HINTS ${TANSO_CUDA_ROOT} ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
        mark_as_advanced(${folder})
    endforeach()
endif()

if(TANSO_WITH_NCCL AND CUDA_NCCL_INCLUDE_DIR AND CUDA_CUDA_RUNTIME_INCLUDE_DIR)
    set(TANSO_NCCL "on, ${CUDA_NCCL_INCLUDE_DIR}")
    add_library(tanso_nccl MODULE
        ${PROJECT_SOURCE_DIR}/src/backends/nccl/nccl.c ${PROJECT_SOURCE_DIR}/src/backends/nccl/peers.c)
    tanso_embed(tanso_nccl ${PROJECT_SOURCE_DIR}/src/backends/nccl/peers.cuh nccl_peers)
    set_target_properties(tanso_nccl PROPERTIES OUTPUT_NAME tanso-nccl)
    target_include_directories(tanso_nccl PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
    target_include_directories(tanso_nccl SYSTEM PRIVATE ${CUDA_NCCL_INCLUDE_DIR} ${CUDA_CUDA_RUNTIME_INCLUDE_DIR})
    target_compile_definitions(tanso_nccl PRIVATE TN_NO_MACROS)
    target_link_libraries(tanso_nccl PRIVATE tanso_flags ${CMAKE_DL_LIBS})
    if(TARGET tanso)
        add_dependencies(tanso tanso_nccl)
    endif()
    if(TANSO_INSTALL)
        install(TARGETS tanso_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
endif()
