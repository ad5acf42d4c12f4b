# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of what the build installs, without building first, and uses what is in it.
include(${CMAKE_CURRENT_LIST_DIR}/run_command.cmake)

file(REMOVE_RECURSE ${WORK_DIR}/stage ${WORK_DIR}/deb ${WORK_DIR}/unpacked)
set(ENV{DESTDIR} ${WORK_DIR}/stage)
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix /usr)
unset(ENV{DESTDIR})
run(${CPACK} -G DEB --config ${BUILD_DIR}/CPackConfig.cmake -B ${WORK_DIR}/deb
    -D CPACK_INSTALL_CMAKE_PROJECTS= -D "CPACK_INSTALLED_DIRECTORIES=${WORK_DIR}/stage\\;/")
file(GLOB package ${WORK_DIR}/deb/*.deb)
run(dpkg-deb --field ${package} Depends)
foreach(needed libsimgrid libyaml-cpp python3-numpy)
  if(NOT output MATCHES "${needed}")
    message(FATAL_ERROR "the package does not depend on ${needed}: ${output}")
  endif()
endforeach()
run(dpkg-deb --extract ${package} ${WORK_DIR}/unpacked)
run(${WORK_DIR}/unpacked/usr/bin/espalier list topologies)
run(${WORK_DIR}/unpacked/usr/bin/espalier sim --topology ring:n=4 --algorithm ring --size 1MiB --engine simgrid)
run(${CMAKE_COMMAND} -E env PYTHONPATH=${WORK_DIR}/unpacked/usr/lib/python3/dist-packages
    ${PYTHON} -c "import espalier as es\nprint(es.Machine('dgx1-v100'))")
if(NOT output MATCHES "^<Machine dgx1-v100: 8 GPUs>")
  message(FATAL_ERROR "the package of Python does not work: ${output}")
endif()
