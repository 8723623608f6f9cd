# SPDX-License-Identifier: MIT
# make install: headers, libraries, command, pkg-config file, CMake package, man page, licence.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tanso)
install(TARGETS tanso_shared EXPORT tanso-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tanso_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tanso)
    install(TARGETS tanso RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT tanso-targets NAMESPACE tanso:: DESTINATION ${package_dir})
install(FILES ${TANSO_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tanso)
install(FILES ${PROJECT_SOURCE_DIR}/include/tanso.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Of the digits that the library carries, whose licence wants it.
install(FILES ${PROJECT_SOURCE_DIR}/src/data/digits/SOURCE.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME digits.md)

file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
if(man_pages)
    install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# The .pc files find their prefix from their own place, so that an installed tree may be moved.
file(RELATIVE_PATH TANSO_PC_TO_PREFIX
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH TANSO_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH TANSO_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
list(JOIN TANSO_CARRIED_LIBRARIES " " TANSO_PC_CARRIED)
foreach(name tanso tanso-static)
    configure_file(cmake/${name}.pc.in ${TANSO_GENERATED_DIR}/${name}.pc @ONLY)
    install(FILES ${TANSO_GENERATED_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

configure_package_config_file(cmake/tanso-config.cmake.in ${TANSO_GENERATED_DIR}/tanso-config.cmake
    INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${TANSO_GENERATED_DIR}/tanso-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${TANSO_GENERATED_DIR}/tanso-config.cmake ${TANSO_GENERATED_DIR}/tanso-config-version.cmake
    DESTINATION ${package_dir})
