# SPDX-License-Identifier: MIT
# The library: one object library, and from it libtanso.so (only TN_API is visible) and libtanso.a, which
# tests of internals link. src/cli is the command's, src/backends/cuda the CUDA plug-in's.

# The rooms' names are the list's, but for the rooms inside others and the command's.
file(STRINGS ${PROJECT_SOURCE_DIR}/src/rooms.txt TANSO_ROOMS REGEX "^[a-z]+:")
list(TRANSFORM TANSO_ROOMS REPLACE ":.*" "")
list(REMOVE_ITEM TANSO_ROOMS cli)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR}
    APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/rooms.txt)

set(TANSO_SOURCES "")
foreach(room IN LISTS TANSO_ROOMS)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.c)
    list(FILTER sources EXCLUDE REGEX "/src/backends/(cuda|mpi|nccl|opencl)/")
    list(APPEND TANSO_SOURCES ${sources})
endforeach()
if(NOT TN_HAVE_JANSSON)
    list(FILTER TANSO_SOURCES EXCLUDE REGEX "/src/io/safetensors.c$")
endif()
if(NOT TN_HAVE_LIBZIP)
    list(FILTER TANSO_SOURCES EXCLUDE REGEX "/src/io/npz.c$")
endif()
if(NOT TANSO_SOURCES)
    message(FATAL_ERROR "src/ holds no sources: is this a whole checkout?")
endif()
file(GLOB TANSO_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tanso/*.h)

string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(JOIN " " TANSO_BUILD_FLAGS ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}
       ${TANSO_NUMERIC_FLAGS} ${TANSO_SANITIZE_FLAGS})
set(TANSO_FEATURE_ROWS "")
set(TANSO_FEATURE_DEFINES "")
foreach(feature IN LISTS TANSO_FEATURES)
    string(TOLOWER ${feature} name)
    set(have 0)
    if(TN_HAVE_${feature})
        set(have 1)
        string(APPEND TANSO_FEATURE_DEFINES "#define TN_HAVE_${feature} 1\n")
    endif()
    list(APPEND TANSO_FEATURE_ROWS
         "    X(${name}, ${have}, \"${TANSO_FEATURE_${feature}_TEXT}\")")
endforeach()
list(JOIN TANSO_FEATURE_ROWS " \\\n" TANSO_FEATURE_ROWS)
configure_file(cmake/tn_build_config.h.in ${TANSO_GENERATED_DIR}/tn_build_config.h @ONLY)

# The operations' numbers, apart from the table of their facts, and those that src/ops/numbers.txt has not apart from
# the others: a changed expression has built anew what reads facts, another row besides that what names such rows.
set(ops ${PROJECT_SOURCE_DIR}/src/ops/ops.def)
set(numbers ${PROJECT_SOURCE_DIR}/src/ops/numbers.txt)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ops} ${numbers})
file(READ ${ops} rows) # not as a list of lines, which brackets in one would join
string(REGEX MATCHALL "\nTN_(MAP|REDUCE|GENERATE|OTHER)\\([A-Z0-9_]+" rows "${rows}")
list(TRANSFORM rows REPLACE "\nTN_[A-Z]+\\(" "")
file(STRINGS ${numbers} first REGEX "^[A-Z]")
string(REPLACE " " ";" first "${first}")
set(TANSO_OPS_FIRST "")
foreach(name IN LISTS first)
    if(NOT name IN_LIST rows)
        message(FATAL_ERROR "src/ops/numbers.txt names ${name}, which is no row of src/ops/ops.def")
    endif()
    string(APPEND TANSO_OPS_FIRST "    TN__OP_${name},\n")
endforeach()
set(number 0)
set(TANSO_OPS_LAST "")
list(REMOVE_ITEM rows ${first})
foreach(name IN LISTS rows)
    string(APPEND TANSO_OPS_LAST "#define TN__OP_${name} (TN__OP_FIRST_FUNCTION + ${number})\n")
    math(EXPR number "${number} + 1")
endforeach()
set(TANSO_OPS_LAST_COUNT ${number})
configure_file(cmake/tn_ops.h.in ${TANSO_GENERATED_DIR}/tn_ops.h @ONLY)
configure_file(cmake/tn_op_functions.h.in ${TANSO_GENERATED_DIR}/tn_op_functions.h @ONLY)

add_library(tanso_objects OBJECT ${TANSO_SOURCES})
set_target_properties(tanso_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(tanso_objects PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${TANSO_GENERATED_DIR})
target_compile_definitions(tanso_objects PRIVATE TN_NO_MACROS) # public functions are plain functions inside
# So that a C++ exception out of a function of the program's runs the clean-ups of the frames that it goes through.
target_compile_options(tanso_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:-fexceptions>)
target_link_libraries(tanso_objects PRIVATE tanso_flags tanso_deps)
# But kernels are not to be left by one, with others at work on the rest of their job: it ends there, and the process
# with it (std::terminate), as a frame of these files has no table to be unwound by.
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/backends/cpu/cpu.c ${PROJECT_SOURCE_DIR}/src/backends/cpu/launch.c
    APPEND PROPERTY COMPILE_OPTIONS -fno-exceptions -fno-unwind-tables -fno-asynchronous-unwind-tables)
# Loops over elements, which -O2 leaves scalar; a Fourier transform of 2^20 numbers takes two thirds of the time.
set(loops base/move functions/functions functions/float functions/fma functions/integer functions/complex
    linalg/lapack linalg/fft matmul/dot matmul/plain reference/histogram reference/index reference/map
    reference/recurrence reference/reduce reference/sort_scan sort/radix sort/search sort/sort)
list(TRANSFORM loops REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/backends/cpu/\\1.c")
set_property(SOURCE ${loops} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>")
# As kernels are compiled on processors that have these: what may not trap is computed on both sides of a condition,
# and so in vectors.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/backends/cpu/functions/fma.c APPEND PROPERTY COMPILE_OPTIONS
        -mfma -mavx2 -fno-trapping-math)
endif()
# Fuzzers read files and multiply nothing, and clang takes minutes for these unrolled loops under sanitizers.
if(TANSO_FUZZ)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backends/cpu/matmul/packed.c
        ${PROJECT_SOURCE_DIR}/src/backends/cpu/matmul/tile.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
endif()

# Text for the kernel compilers: the scalar functions of every operation, and what stands in front of kernels in C, in
# CUDA C++ and in OpenCL C. And the digits for training without a network.
file(GLOB_RECURSE kernel_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/scalar*.h
    ${PROJECT_SOURCE_DIR}/src/compile/*.cuh ${PROJECT_SOURCE_DIR}/src/compile/*.cl
    ${PROJECT_SOURCE_DIR}/src/compile/c_*.h)
foreach(text IN LISTS kernel_texts)
    get_filename_component(symbol ${text} NAME_WE)
    tanso_embed(tanso_objects ${text} ${symbol})
endforeach()
tanso_embed(tanso_objects ${PROJECT_SOURCE_DIR}/src/data/digits/digits.csv.gz digits)

add_library(tanso_shared SHARED)
set_target_properties(tanso_shared PROPERTIES
    OUTPUT_NAME tanso EXPORT_NAME tanso VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_libraries(tanso_shared PRIVATE tanso_objects tanso_flags tanso_deps)
# Sanitizers' run-time symbols only a program brings, whoever asked for them.
if(NOT "${TANSO_SANITIZE_FLAGS} ${CMAKE_C_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}" MATCHES "-fsanitize")
    target_link_options(tanso_shared PRIVATE LINKER:--no-undefined)
endif()
target_include_directories(tanso_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(tanso::tanso ALIAS tanso_shared)

add_library(tanso_static STATIC)
set_target_properties(tanso_static PROPERTIES OUTPUT_NAME tanso)
target_link_libraries(tanso_static PUBLIC tanso_objects tanso_flags tanso_deps)
# For programs that carry the library: what to include and to link, and none of the flags that Tanso is built with.
add_library(tanso_carried INTERFACE)
target_include_directories(tanso_carried INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(tanso_carried INTERFACE $<LINK_ONLY:tanso_static>)
add_library(tanso::static ALIAS tanso_carried)
