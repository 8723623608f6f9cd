# SPDX-License-Identifier: MIT
# Says what this build has and lacks, when it is configured; `tanso info` says the same later.

message(STATUS "Tanso ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
foreach(feature IN LISTS TANSO_FEATURES)
    if(TN_HAVE_${feature})
        message(STATUS "  with    ${TANSO_FEATURE_${feature}_TEXT}")
    else()
        message(STATUS "  without ${TANSO_FEATURE_${feature}_TEXT}: not needed, left out")
    endif()
endforeach()
message(STATUS "  CUDA plug-in: ${TANSO_CUDA}")
message(STATUS "  MPI plug-in: ${TANSO_MPI}")
message(STATUS "  NCCL plug-in: ${TANSO_NCCL}")
message(STATUS "  OpenCL plug-in: ${TANSO_OPENCL}")
if(TANSO_SANITIZE)
    message(STATUS "  sanitizers: ${TANSO_SANITIZE}")
endif()
