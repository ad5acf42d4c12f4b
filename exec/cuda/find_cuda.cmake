# SPDX-License-Identifier: Apache-2.0
# Decides whether the executor for GPUs is built. Sets ESPALIER_HAS_CUDA and ESPALIER_CUDA_MESSAGE, what
# there is to say about it, and, where CUDA is used, CMAKE_CUDA_COMPILER and CMAKE_CUDA_ARCHITECTURES, so
# that enable_language(CUDA) works without nvcc in PATH and for any toolkit.

# espalier_try_nvcc(<result>): sets it to what is wrong with the toolkit's compiler, or to "". An older
# one refuses a C++ compiler that is too new for it, and enable_language would end the configuration.
function(espalier_try_nvcc result)
  set(source ${CMAKE_BINARY_DIR}/try_nvcc.cu)
  file(WRITE ${source} "#include <cstdint>\n__global__ void kernel(std::uint8_t* out) { *out = 1; }\n")
  set(host)
  if(CMAKE_CUDA_HOST_COMPILER)
    set(host -ccbin ${CMAKE_CUDA_HOST_COMPILER})
  endif()
  execute_process(
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++17 ${host} -c ${source} -o ${source}.o
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status EQUAL 0)
    set(text "")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# espalier_cuda_architectures(<result>): machine code for the GPUs of data centres that this compiler
# knows, and PTX of the oldest one it knows, from which the driver makes code for all others.
function(espalier_cuda_architectures result)
  execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-arch OUTPUT_VARIABLE text)
  string(REGEX MATCHALL "compute_[0-9]+" known "${text}")
  list(TRANSFORM known REPLACE "compute_" "")
  list(SORT known COMPARE NATURAL)
  set(chosen)
  foreach(architecture IN LISTS known)
    if(architecture LESS 60)  # before P100
      continue()
    endif()
    if(NOT chosen)
      list(APPEND chosen ${architecture}-virtual)
    endif()
    if(architecture MATCHES "^(60|70|80|90|100)$")
      list(APPEND chosen ${architecture}-real)
    endif()
  endforeach()
  set(${result} "${chosen}" PARENT_SCOPE)
endfunction()

set(ESPALIER_HAS_CUDA OFF)
set(ESPALIER_CUDA_MESSAGE "CUDA: turned off; programs are executed on the host only")
if(ESPALIER_CUDA)
  find_package(CUDAToolkit 11.8 QUIET)
  if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE OR NOT TARGET CUDA::cudart_static)
    set(ESPALIER_CUDA_MESSAGE
        "CUDA: no toolkit 11.8 or newer was found; programs are executed on the host only")
  else()
    if(NOT DEFINED ESPALIER_NVCC_PROBLEM OR NOT "${ESPALIER_NVCC_PROBLEM}" STREQUAL "")
      espalier_try_nvcc(problem)
      set(ESPALIER_NVCC_PROBLEM "${problem}" CACHE INTERNAL "What is wrong with nvcc")
    endif()
    if(ESPALIER_NVCC_PROBLEM)
      set(ESPALIER_CUDA_MESSAGE "CUDA: ${CUDAToolkit_NVCC_EXECUTABLE} does not work with this C++ \
compiler (-DCMAKE_CUDA_HOST_COMPILER names another one); programs are executed on the host only. It \
says:\n${ESPALIER_NVCC_PROBLEM}")
    else()
      set(ESPALIER_HAS_CUDA ON)
      if(NOT CMAKE_CUDA_COMPILER)
        set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
      endif()
      if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        espalier_cuda_architectures(CMAKE_CUDA_ARCHITECTURES)
      endif()
      set(ESPALIER_CUDA_MESSAGE
          "CUDA: toolkit ${CUDAToolkit_VERSION}, kernels for ${CMAKE_CUDA_ARCHITECTURES}")
    endif()
  endif()
endif()
if(NOT ESPALIER_HAS_CUDA AND ESPALIER_CUDA AND NOT ESPALIER_CUDA STREQUAL "AUTO")
  message(FATAL_ERROR "${ESPALIER_CUDA_MESSAGE} (ESPALIER_CUDA is ON)")
endif()
if(ESPALIER_HAS_CUDA)
  enable_language(CUDA)
endif()
