# SPDX-License-Identifier: MIT
# Options, and the flags that every target shares (tanso_flags, an interface library).

# What is beside the library and the command is for who works on Tanso, not for a project that has it as a part.
option(TANSO_BUILD_TESTS "Build the tests (needs cmocka)" ${PROJECT_IS_TOP_LEVEL})
option(TANSO_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(TANSO_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(TANSO_INSTALL "Make install also installs Tanso: for a project that only carries it, OFF" ON)
option(TANSO_WERROR "Treat compiler warnings as errors" OFF)
option(TANSO_FUZZ "Build the fuzzers of tests/fuzz with clang's libFuzzer" OFF)
set(TANSO_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    if(PROJECT_IS_TOP_LEVEL)
        set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
    else()
        set(CMAKE_BUILD_TYPE Release)
    endif()
endif()
if(TANSO_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TANSO_FUZZ needs clang, and the compiler is ${CMAKE_C_COMPILER}: "
                        "configure a new folder with -DCMAKE_C_COMPILER=clang")
endif()

set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_UNITY_BUILD OFF) # whatever a project says that Tanso is a part of: files have static functions of one name

# The reference evaluator and the generated kernels must give the same bits: no contraction to fused
# multiply-add, two's complement wrap-around, and no errno that would keep a compiler from inlining sqrt.
set(TANSO_NUMERIC_FLAGS -ffp-contract=off -fwrapv -fno-math-errno)

set(TANSO_SANITIZE_FLAGS "")
if(TANSO_SANITIZE)
    set(TANSO_SANITIZE_FLAGS -fsanitize=${TANSO_SANITIZE} -fno-omit-frame-pointer
                             -fno-sanitize-recover=all)
endif()
if(TANSO_FUZZ)
    list(APPEND TANSO_SANITIZE_FLAGS -fsanitize=fuzzer-no-link)
endif()

add_library(tanso_flags INTERFACE)
target_compile_options(tanso_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:${TANSO_NUMERIC_FLAGS};-Wall;-Wextra>
    $<$<AND:$<C_COMPILER_ID:Clang>,$<COMPILE_LANGUAGE:C>>:-Wno-bitwise-conditional-parentheses>
    $<$<AND:$<BOOL:${TANSO_WERROR}>,$<COMPILE_LANGUAGE:C>>:-Werror>
    ${TANSO_SANITIZE_FLAGS})
target_compile_definitions(tanso_flags INTERFACE _GNU_SOURCE)
target_link_options(tanso_flags INTERFACE ${TANSO_SANITIZE_FLAGS})
