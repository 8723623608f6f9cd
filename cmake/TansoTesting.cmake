# SPDX-License-Identifier: MIT
# How tests are built and run; tests/CMakeLists.txt says which.

set(TANSO_TEST_DIR ${CMAKE_BINARY_DIR}/tests)
set(TANSO_TEST_DATA_DIR ${TANSO_TEST_DIR}/generated)
set(TANSO_TEST_KERNEL_CACHE ${TANSO_TEST_DIR}/kernel-cache CACHE PATH
    "Where tests keep compiled kernels; builds that differ in sanitizers may share a folder")
file(MAKE_DIRECTORY ${TANSO_TEST_DIR}/home ${TANSO_TEST_KERNEL_CACHE} ${TANSO_TEST_DATA_DIR})

# Rooms whose tests are about no device, or about one that they name: the others compute on whichever is to be tested,
# and have the label "device" (see tests/on_device).
set(TANSO_TEST_NO_DEVICE build core device backends compile fuzz)

# A python3 that can import the modules named, or "" (a first python3 in PATH may lack what the system's has).
function(tanso_find_python result modules)
    set(${result} "" PARENT_SCOPE)
    foreach(python python3 /usr/bin/python3)
        execute_process(COMMAND ${python} -c "import ${modules}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(status EQUAL 0)
            set(${result} ${python} PARENT_SCOPE)
            return()
        endif()
    endforeach()
endfunction()

# What every compiled part of a test shares.
function(tanso_test_target target)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(${target} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
    target_link_libraries(${target} PRIVATE tanso_static)
endfunction()

# The figure in the row of a test among "room.subject figure" rows, or "".
function(tanso_test_figure result name rows)
    set(${result} "" PARENT_SCOPE)
    foreach(row IN LISTS rows)
        separate_arguments(row)
        list(GET row 0 row_name)
        if(row_name STREQUAL name)
            list(GET row 1 figure)
            set(${result} ${figure} PARENT_SCOPE)
        endif()
    endforeach()
endfunction()

# A test's surroundings: an empty home, a kernel cache of this build, no user's folders. Tests run side by side, each
# with threads for all cores: those that wait sleep, or they would take the processors from those that work.
set(TANSO_TEST_ENVIRONMENT
    HOME=${TANSO_TEST_DIR}/home
    TANSO_CACHE_DIR=${TANSO_TEST_KERNEL_CACHE}
    TANSO_TEST_DATA=${TANSO_TEST_DATA_DIR}
    TANSO_COMMAND=${CMAKE_BINARY_DIR}/tanso
    OMP_WAIT_POLICY=passive)

function(tanso_test_properties name)
    string(REGEX REPLACE "\\.[0-9]+$" "" whole ${name}) # a slice is allowed what the whole is
    tanso_test_figure(seconds ${whole} "${TANSO_TEST_TIMEOUTS}")
    if(seconds)
        set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
    endif()
    if(whole IN_LIST TANSO_TEST_LONG)
        set_tests_properties(${name} PROPERTIES COST 100)
    endif()
    string(REGEX REPLACE "\\..*" "" room ${name})
    if(NOT room IN_LIST TANSO_TEST_NO_DEVICE)
        set_property(TEST ${name} APPEND PROPERTY LABELS device)
    endif()
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TANSO_TEST_ENVIRONMENT}")
    if(room MATCHES "^(comm|cli)$" AND TARGET tanso_mpi)
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
            TANSO_PLUGIN_DIR=$<TARGET_FILE_DIR:tanso_mpi> TANSO_TEST_MPIRUN=${PROJECT_SOURCE_DIR}/tests/mpirun
            TANSO_TEST_HOSTS=${PROJECT_SOURCE_DIR}/tests/hosts)
    endif()
    if(room STREQUAL "comm" AND TARGET tanso_nccl AND TARGET tanso_cuda_objects AND NOT TANSO_SANITIZE)
        file(MAKE_DIRECTORY ${TANSO_TEST_DIR}/nccl/kernels)
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT TANSO_PLUGIN_DIR=$<TARGET_FILE_DIR:tanso_nccl>
            TANSO_TEST_NCCL=${TANSO_TEST_DIR}/nccl TANSO_TEST_DRIVER=${TANSO_TEST_DIR}/emulator
            TANSO_TEST_KERNELS=${TANSO_TEST_DIR}/nccl/kernels)
    endif()
    set_tests_properties(${name} PROPERTIES
        SKIP_RETURN_CODE 77
        WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
        ENVIRONMENT_MODIFICATION "XDG_CACHE_HOME=unset:;XDG_CONFIG_HOME=unset:;XDG_DATA_HOME=unset:")
endfunction()

# The program of a room's tests, test_<room>, of all sources named; and a ctest entry for each, room.subject. The files'
# main() are compiled under other names, which tests/runner.c knows from a list.
function(tanso_add_room_tests room)
    set(target test_${room})
    set(list "")
    set(subjects "")
    foreach(source IN LISTS ARGN)
        get_filename_component(program ${source} NAME_WE)
        string(REGEX REPLACE "^test_" "" subject ${program})
        set(definitions main=tanso_main_${subject})
        if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/${room}/${subject}) # the test's own files
            list(APPEND definitions "TANSO_TEST_FILES=\"${PROJECT_SOURCE_DIR}/tests/${room}/${subject}\"")
        endif()
        set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "${definitions}")
        string(APPEND list "TEST(${subject})\n")
        list(APPEND subjects ${subject})
    endforeach()
    file(CONFIGURE OUTPUT ${TANSO_TEST_DIR}/${target}.def CONTENT "${list}")

    file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*.c)
    list(FILTER helpers EXCLUDE REGEX "/test_[^/]*$")
    if(helpers)
        add_library(tanso_test_${room} OBJECT ${helpers})
        tanso_test_target(tanso_test_${room})
        if(room STREQUAL "cuda")
            target_link_libraries(tanso_test_${room} PRIVATE tanso_cuda_objects)
        endif()
    endif()

    add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/runner.c ${ARGN})
    tanso_test_target(${target})
    target_compile_definitions(${target} PRIVATE TANSO_TESTS="${TANSO_TEST_DIR}/${target}.def")
    target_link_libraries(${target} PRIVATE ${CMOCKA_LIBRARY})
    foreach(part tanso_test_support tanso_test_${room})
        if(TARGET ${part})
            target_link_libraries(${target} PRIVATE ${part})
        endif()
    endforeach()
    if(room STREQUAL "cli")
        if(TARGET tanso_cli)
            target_link_libraries(${target} PRIVATE tanso_cli)
        endif()
        if(TARGET tanso)
            add_dependencies(${target} tanso)
        endif()
    endif()
    if(TARGET tanso_cuda_objects AND NOT room IN_LIST TANSO_TEST_NO_DEVICE)
        target_link_libraries(${target} PRIVATE tanso_cuda_objects) # the plug-in needs libtanso.so
    endif()
    if(TARGET tanso_opencl_objects AND NOT room IN_LIST TANSO_TEST_NO_DEVICE) # as OpenCL's does
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/opencl/register.c)
        target_link_libraries(${target} PRIVATE tanso_opencl_objects ${TANSO_OPENCL_LIBRARY})
    endif()
    foreach(subject IN LISTS subjects)
        tanso_add_room_test(${room} ${subject})
    endforeach()
endfunction()

# The ctest entry of a subject, or those of its slices.
function(tanso_add_room_test room subject)
    set(command ${PROJECT_SOURCE_DIR}/tests/launch $<TARGET_FILE:test_${room}> ${subject})
    tanso_test_figure(slices ${room}.${subject} "${TANSO_TEST_SLICES}")
    if(NOT slices)
        add_test(NAME ${room}.${subject} COMMAND ${command})
        tanso_test_properties(${room}.${subject})
        if(${room}.${subject} IN_LIST TANSO_TEST_RANKS)
            tanso_add_ranks_tests(${room} ${subject})
        endif()
        return()
    endif()
    foreach(number RANGE 1 ${slices})
        math(EXPR slice "${number} - 1")
        add_test(NAME ${room}.${subject}.${number} COMMAND ${command})
        tanso_test_properties(${room}.${subject}.${number})
        set_property(TEST ${room}.${subject}.${number} APPEND PROPERTY ENVIRONMENT TANSO_TEST_SLICE=${slice}/${slices})
    endforeach()
endfunction()

# The same as several processes: three that tanso launch starts, and one to four of MPI's.
function(tanso_add_ranks_tests room subject)
    if(TARGET tanso_cli)
        set(name ${room}.${subject}.launched)
        add_test(NAME ${name} COMMAND tanso launch -n 3 $<TARGET_FILE:test_${room}> ${subject})
        tanso_test_properties(${name})
        set_tests_properties(${name} PROPERTIES PROCESSORS 2 TIMEOUT 120 LABELS "")
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT TANSO_COMM_TIMEOUT=20)
    endif()
    if(NOT TARGET tanso_mpi)
        return()
    endif()
    add_dependencies(test_${room} tanso_mpi)
    foreach(ranks RANGE 1 4)
        set(name ${room}.${subject}.${ranks})
        add_test(NAME ${name}
                 COMMAND ${PROJECT_SOURCE_DIR}/tests/mpirun ${ranks} $<TARGET_FILE:test_${room}> ${subject})
        tanso_test_properties(${name})
        set_tests_properties(${name} PROPERTIES PROCESSORS 2 TIMEOUT 120)
        if(NOT ranks EQUAL 3) # one of them is enough for other devices
            set_property(TEST ${name} PROPERTY LABELS "")
        endif()
    endforeach()
endfunction()

# Runs every gen_*.py whenever it or another script beside it has changed.
function(tanso_generate_test_data)
    file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/gen_*.py)
    if(NOT scripts)
        return()
    endif()
    tanso_find_python(python numpy)
    if(NOT python)
        message(STATUS "  without values from NumPy, which only tests need (package python3-numpy)")
        return()
    endif()
    set(stamps "")
    foreach(script IN LISTS scripts)
        get_filename_component(name ${script} NAME_WE)
        set(stamp ${TANSO_TEST_DIR}/${name}.stamp)
        get_filename_component(folder ${script} DIRECTORY)
        file(GLOB modules CONFIGURE_DEPENDS ${folder}/*.py) # a script may import its neighbours
        add_custom_command(OUTPUT ${stamp}
            COMMAND ${python} -B ${script} ${TANSO_TEST_DATA_DIR}
            COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
            DEPENDS ${modules} COMMENT "Computing expected values: ${name}" VERBATIM)
        list(APPEND stamps ${stamp})
    endforeach()
    add_custom_target(tanso_expected_values ALL DEPENDS ${stamps})
endfunction()

# Without libFuzzer, each fuzzer still reads its whole corpus, as a test.
function(tanso_add_corpus_tests)
    file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
    foreach(source IN LISTS fuzzers)
        get_filename_component(program ${source} NAME_WE)
        string(REGEX REPLACE "^fuzz_" "" subject ${program})
        add_executable(corpus_${subject} ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
        target_include_directories(corpus_${subject} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
        target_link_libraries(corpus_${subject} PRIVATE tanso_static)
        add_test(NAME fuzz.${subject}.corpus
                 COMMAND corpus_${subject} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${subject})
        tanso_test_properties(fuzz.${subject}.corpus)
    endforeach()
endfunction()

# The replay of NumPy's calls, tests/conformance/replay: a program over the public functions; as tests, all cases that
# tests/replay/generate.py makes (one in eight of them under sanitizers), and some again, by compiled kernels;
# tests/replay_compiled does that with all.
function(tanso_add_replay)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/replay/*.c)
    add_executable(replay ${sources})
    target_compile_options(replay PRIVATE -Wno-missing-field-initializers) # rows leave out what they do not use
    target_link_libraries(replay PRIVATE tanso::tanso tanso_flags PkgConfig::JANSSON m)
    if(TARGET tanso_cuda)
        add_dependencies(replay tanso_cuda)
    endif()
    tanso_find_python(python numpy)
    if(NOT python)
        return()
    endif()
    set(cases ${TANSO_TEST_DIR}/replay-cases)
    set(share 1)
    if(TANSO_SANITIZE)
        set(share 8)
    endif()
    add_test(NAME replay.generate
             COMMAND ${python} -B ${PROJECT_SOURCE_DIR}/tests/replay/generate.py ${cases} --share ${share})
    add_test(NAME replay.cases COMMAND replay ${cases})
    math(EXPR compiled "24 / ${share}")
    add_test(NAME replay.compiled COMMAND replay ${cases} --compile always --share ${compiled})
    add_test(NAME replay.tool
             COMMAND ${python} -B ${PROJECT_SOURCE_DIR}/tests/replay/check_tool.py $<TARGET_FILE:replay>)
    foreach(name replay.generate replay.cases replay.compiled replay.tool)
        tanso_test_properties(${name})
    endforeach()
    # Tens of thousands of small files, which a busy disk takes minutes for.
    set_tests_properties(replay.generate PROPERTIES FIXTURES_SETUP replay_cases TIMEOUT 900 LABELS "")
    set_tests_properties(replay.cases replay.compiled PROPERTIES FIXTURES_REQUIRED replay_cases TIMEOUT 900
        PROCESSORS 2)
endfunction()

# A driver of the tests' own (cuda/library.h) in a folder that LD_LIBRARY_PATH can name: one file under the names of all
# libraries that the backend looks for. Those that it lacks functions of are not used.
function(tanso_driver_library target folder)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/cuda/queues.c ${PROJECT_SOURCE_DIR}/src/core/hash.c)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(${target} SYSTEM PRIVATE
        $<TARGET_PROPERTY:tanso_cuda_objects,INTERFACE_INCLUDE_DIRECTORIES>)
    target_link_libraries(${target} PRIVATE tanso_flags)
    set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME libcuda.so.1
        LIBRARY_OUTPUT_DIRECTORY ${TANSO_TEST_DIR}/${folder})
    file(STRINGS ${CUDA_CUDA_INCLUDE_DIR}/cuda.h major REGEX "^#define CUDA_VERSION [0-9]+")
    string(REGEX REPLACE "^.* ([0-9]+)[0-9][0-9][0-9]$" "\\1" major "${major}")
    foreach(library nvrtc cublasLt cufft cusolver)
        file(CREATE_LINK libcuda.so.1 ${TANSO_TEST_DIR}/${folder}/lib${library}.so.${major} SYMBOLIC)
    endforeach()
    file(CREATE_LINK libcuda.so.1 ${TANSO_TEST_DIR}/${folder}/libcudnn.so.9 SYMBOLIC)
endfunction()
