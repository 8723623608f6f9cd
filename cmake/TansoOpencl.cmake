# SPDX-License-Identifier: MIT
# The OpenCL backend, a sketch of a second language for GPUs' kernels: a shared object of its own beside libtanso.so,
# loaded when a device of that name is first asked for.

option(TANSO_WITH_OPENCL "Build the OpenCL plug-in where CL/cl.h and libOpenCL are found" ON)
set(TANSO_OPENCL "off: TANSO_WITH_OPENCL is off")

if(TANSO_WITH_OPENCL AND TANSO_SANITIZE)
    set(TANSO_OPENCL "off: not built with sanitizers, which what OpenCL compiles knows nothing of")
elseif(TANSO_WITH_OPENCL)
    set(TANSO_OPENCL "off: CL/cl.h or libOpenCL not found (package ocl-icd-opencl-dev)")
    find_path(TANSO_OPENCL_INCLUDE_DIR CL/cl.h)
    find_library(TANSO_OPENCL_LIBRARY OpenCL)
    mark_as_advanced(TANSO_OPENCL_INCLUDE_DIR TANSO_OPENCL_LIBRARY)
endif()

if(TANSO_OPENCL_INCLUDE_DIR AND TANSO_OPENCL_LIBRARY AND TANSO_WITH_OPENCL AND NOT TANSO_SANITIZE)
    set(TANSO_OPENCL "on, ${TANSO_OPENCL_LIBRARY}")
    file(GLOB opencl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/opencl/*.c)
    add_library(tanso_opencl_objects OBJECT ${opencl_sources}) # which tests link
    set_target_properties(tanso_opencl_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(tanso_opencl_objects PUBLIC
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
    target_include_directories(tanso_opencl_objects SYSTEM PUBLIC ${TANSO_OPENCL_INCLUDE_DIR})
    target_compile_definitions(tanso_opencl_objects PRIVATE TN_NO_MACROS)
    target_link_libraries(tanso_opencl_objects PRIVATE tanso_flags)
    tanso_embed(tanso_opencl_objects ${PROJECT_SOURCE_DIR}/src/backends/opencl/operations.cl opencl_operations)

    add_library(tanso_opencl MODULE)
    set_target_properties(tanso_opencl PROPERTIES OUTPUT_NAME tanso-opencl INSTALL_RPATH "$ORIGIN")
    target_link_libraries(tanso_opencl PRIVATE
        tanso_opencl_objects tanso::tanso tanso_flags Threads::Threads ${TANSO_OPENCL_LIBRARY})
    if(TARGET tanso)
        add_dependencies(tanso tanso_opencl)
    endif()
    if(TANSO_INSTALL)
        install(TARGETS tanso_opencl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
endif()
