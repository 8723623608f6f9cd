# SPDX-License-Identifier: MIT
# The CUDA backend: a shared object of its own beside libtanso.so, loaded at run time. Only CUDA's headers
# are needed to build it; every CUDA library is opened by name when a GPU is first asked for.

set(TANSO_CUDA_ROOT "" CACHE PATH "Where CUDA's include folder is, if not in a usual place")
set(TANSO_CUDA "off: src/backends/cuda holds no sources")

file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.c)
if(cuda_sources)
    find_path(CUDA_INCLUDE_DIR cuda.h
        HINTS ${TANSO_CUDA_ROOT} ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
    if(CUDA_INCLUDE_DIR)
        set(TANSO_CUDA "on, ${CUDA_INCLUDE_DIR}")
        add_library(tanso_cuda MODULE ${cuda_sources})
        set_target_properties(tanso_cuda PROPERTIES OUTPUT_NAME tanso-cuda INSTALL_RPATH "$ORIGIN")
        target_include_directories(tanso_cuda PRIVATE
            ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
        target_include_directories(tanso_cuda SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
        target_link_libraries(tanso_cuda PRIVATE tanso::tanso tanso_flags Threads::Threads ${CMAKE_DL_LIBS})
        if(TARGET tanso)
            add_dependencies(tanso tanso_cuda)
        endif()
        install(TARGETS tanso_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    else()
        set(TANSO_CUDA "off: cuda.h not found (set TANSO_CUDA_ROOT)")
    endif()
endif()
