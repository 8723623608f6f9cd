# SPDX-License-Identifier: MIT
# Communicators over MPI: a shared object of its own beside libtanso.so, loaded where a launcher has started a program
# as one of several processes. It uses nothing of libtanso.so.

option(TANSO_WITH_MPI "Build the MPI plug-in where MPI is found" ON)
set(TANSO_MPI "off: TANSO_WITH_MPI is off")

if(TANSO_WITH_MPI)
    set(TANSO_MPI "off: mpi.h not found (package libopenmpi-dev)")
    find_package(MPI QUIET COMPONENTS C)
endif()

if(TANSO_WITH_MPI AND MPI_C_FOUND)
    set(TANSO_MPI "on, ${MPI_C_LIBRARY_VERSION_STRING}")
    string(REGEX REPLACE ",.*" "" TANSO_MPI "${TANSO_MPI}")
    file(GLOB mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/mpi/*.c)
    add_library(tanso_mpi MODULE ${mpi_sources})
    set_target_properties(tanso_mpi PROPERTIES OUTPUT_NAME tanso-mpi)
    target_include_directories(tanso_mpi PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
    target_include_directories(tanso_mpi SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
    target_compile_definitions(tanso_mpi PRIVATE TN_NO_MACROS)
    target_link_libraries(tanso_mpi PRIVATE tanso_flags MPI::MPI_C)
    if(TARGET tanso)
        add_dependencies(tanso tanso_mpi)
    endif()
    if(TANSO_INSTALL)
        install(TARGETS tanso_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
endif()
