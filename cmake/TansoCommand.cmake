# SPDX-License-Identifier: MIT
# The command tanso, on the shared library. Its sources but main.c are an object library, so that
# tests/cli can link them.

file(GLOB_RECURSE TANSO_CLI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
set(TANSO_CLI_MAIN ${PROJECT_SOURCE_DIR}/src/cli/main.c)
list(REMOVE_ITEM TANSO_CLI_SOURCES ${TANSO_CLI_MAIN})

if(TANSO_CLI_SOURCES)
    add_library(tanso_cli OBJECT ${TANSO_CLI_SOURCES})
    target_include_directories(tanso_cli PUBLIC
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
    # Not tanso_deps: of several libraries with LAPACK's functions, the command would come to have another one than the
    # library.
    target_link_libraries(tanso_cli PRIVATE tanso_flags)
endif()
if(EXISTS ${TANSO_CLI_MAIN})
    file(RELATIVE_PATH to_libdir ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    add_executable(tanso ${TANSO_CLI_MAIN})
    set_target_properties(tanso PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libdir}")
    target_include_directories(tanso PRIVATE ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
    target_link_libraries(tanso PRIVATE tanso::tanso tanso_flags m)
    if(TARGET tanso_cli)
        target_link_libraries(tanso PRIVATE tanso_cli)
    endif()
endif()
