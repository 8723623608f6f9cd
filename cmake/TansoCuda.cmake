# SPDX-License-Identifier: MIT
# The CUDA backend: a shared object of its own beside libtanso.so, loaded at run time. Only CUDA's headers
# are needed to build it; every CUDA library is opened by name when a GPU is first asked for.

set(TANSO_CUDA_ROOT "" CACHE PATH "Where CUDA's include folder is, if not in a usual place")
option(TANSO_WITH_CUDA "Build the CUDA plug-in where CUDA's headers are found" ON)
set(TANSO_CUDA "off: TANSO_WITH_CUDA is off")

if(TANSO_WITH_CUDA)
    set(TANSO_CUDA "")
    foreach(header cuda nvrtc cublasLt)
        string(TOUPPER CUDA_${header}_INCLUDE_DIR folder)
        find_path(${folder} ${header}.h
            HINTS ${TANSO_CUDA_ROOT} ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
        mark_as_advanced(${folder})
        if(NOT ${folder} AND NOT TANSO_CUDA)
            set(TANSO_CUDA "off: ${header}.h not found (set TANSO_CUDA_ROOT)")
        endif()
    endforeach()
endif()

if(NOT TANSO_CUDA)
    set(TANSO_CUDA "on, ${CUDA_CUDA_INCLUDE_DIR}")
    file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.c)
    # Objects, so that tests can link them and put a driver of their own in the place of CUDA's.
    add_library(tanso_cuda_objects OBJECT ${cuda_sources})
    set_target_properties(tanso_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(tanso_cuda_objects PUBLIC
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
    target_include_directories(tanso_cuda_objects SYSTEM PUBLIC
        ${CUDA_CUDA_INCLUDE_DIR} ${CUDA_NVRTC_INCLUDE_DIR} ${CUDA_CUBLASLT_INCLUDE_DIR})
    target_compile_definitions(tanso_cuda_objects PRIVATE TN_NO_MACROS)
    target_link_libraries(tanso_cuda_objects PRIVATE tanso_flags)
    file(GLOB_RECURSE cuda_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cuh)
    foreach(text IN LISTS cuda_texts)
        get_filename_component(symbol ${text} NAME_WE)
        tanso_embed(tanso_cuda_objects ${text} cuda_${symbol})
    endforeach()

    add_library(tanso_cuda MODULE)
    set_target_properties(tanso_cuda PROPERTIES OUTPUT_NAME tanso-cuda INSTALL_RPATH "$ORIGIN")
    target_link_libraries(tanso_cuda PRIVATE
        tanso_cuda_objects tanso::tanso tanso_flags Threads::Threads ${CMAKE_DL_LIBS})
    if(TARGET tanso)
        add_dependencies(tanso tanso_cuda)
    endif()
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backends/plugin.c PROPERTIES
        COMPILE_DEFINITIONS TN_CUDA_PLUGIN_BUILT)
    if(TANSO_INSTALL)
        install(TARGETS tanso_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
endif()
