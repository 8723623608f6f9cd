# SPDX-License-Identifier: MIT
# What the library stands on. tanso_deps (an interface library) links what was found; each optional part
# that is missing turns a TN_HAVE_* off, and TansoSummary.cmake says so.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

add_library(tanso_deps INTERFACE)
target_link_libraries(tanso_deps INTERFACE
    PkgConfig::LIBZIP PkgConfig::JANSSON ZLIB::ZLIB Threads::Threads m ${CMAKE_DL_LIBS})
target_link_options(tanso_deps INTERFACE LINKER:--as-needed)

set(TANSO_FEATURES OPENMP DNNL CBLAS LAPACK CURL PNG)
set(TANSO_FEATURE_OPENMP_TEXT "OpenMP, which oneDNN is told its threads by (comes with gcc)")
set(TANSO_FEATURE_DNNL_TEXT "oneDNN, fast matrix products (package libdnnl-dev)")
set(TANSO_FEATURE_CBLAS_TEXT "CBLAS, matrix products without oneDNN (package libopenblas-dev)")
set(TANSO_FEATURE_LAPACK_TEXT "LAPACK, linear algebra (package libopenblas-dev or liblapack-dev)")
set(TANSO_FEATURE_CURL_TEXT "libcurl, downloads (package libcurl4-openssl-dev)")
set(TANSO_FEATURE_PNG_TEXT "libpng, pictures as input (package libpng-dev)")

foreach(feature IN LISTS TANSO_FEATURES)
    option(TANSO_WITH_${feature} "Use ${TANSO_FEATURE_${feature}_TEXT} where it is found" ON)
    set(TN_HAVE_${feature} OFF)
endforeach()

# Links found libraries into the product under a feature's name.
function(tanso_feature feature)
    target_link_libraries(tanso_deps INTERFACE ${ARGN})
    set(TN_HAVE_${feature} ON PARENT_SCOPE)
endfunction()

if(TANSO_WITH_OPENMP)
    find_package(OpenMP QUIET COMPONENTS C)
    if(OpenMP_C_FOUND)
        tanso_feature(OPENMP OpenMP::OpenMP_C)
    endif()
endif()

if(TANSO_WITH_DNNL)
    find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
    find_library(DNNL_LIBRARY dnnl)
    if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
        target_include_directories(tanso_deps SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
        tanso_feature(DNNL ${DNNL_LIBRARY})
    endif()
endif()

if(TANSO_WITH_CBLAS)
    include(CheckLibraryExists)
    find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas blis)
    find_library(CBLAS_LIBRARY NAMES openblas blis cblas blas)
    if(CBLAS_INCLUDE_DIR AND CBLAS_LIBRARY)
        check_library_exists(${CBLAS_LIBRARY} cblas_sgemm "" CBLAS_WORKS)
        if(CBLAS_WORKS)
            target_include_directories(tanso_deps SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
            tanso_feature(CBLAS ${CBLAS_LIBRARY})
        endif()
    endif()
endif()

if(TANSO_WITH_LAPACK)
    include(CheckLibraryExists)
    # The system's choice first, which NumPy has, too; OpenBLAS brings LAPACK with it.
    find_library(LAPACK_LIBRARY NAMES lapack openblas)
    if(LAPACK_LIBRARY)
        check_library_exists(${LAPACK_LIBRARY} dgesdd_ "" LAPACK_WORKS)
        if(LAPACK_WORKS)
            tanso_feature(LAPACK ${LAPACK_LIBRARY})
        endif()
    endif()
endif()

if(TANSO_WITH_CURL)
    find_package(CURL QUIET)
    if(CURL_FOUND)
        # Loaded when first needed (src/data/download.c), not linked.
        target_include_directories(tanso_deps SYSTEM INTERFACE ${CURL_INCLUDE_DIRS})
        tanso_feature(CURL)
    endif()
endif()

if(TANSO_WITH_PNG)
    find_package(PNG QUIET)
    if(PNG_FOUND)
        tanso_feature(PNG PNG::PNG)
    endif()
endif()
