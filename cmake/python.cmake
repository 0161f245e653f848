# The Python package: python/sifr, and its extension sifr/_sifr.abi3.so over the C interface, of
# CPython's limited API, so that one file serves 3.11 and all later ones. `pip install .` builds it
# through pyproject.toml; the ordinary build makes it in build/python/sifr, where Python.h is.
option(SIFR_PYTHON "Build the Python package, where Python.h is" ON)
if(NOT SIFR_PYTHON OR SIFR_SANITIZE) # an interpreter without the sanitizer cannot load it
  return()
endif()
find_package(Python 3.11 COMPONENTS Interpreter Development.Module)
if(NOT Python_Development.Module_FOUND)
  if(SKBUILD)
    message(FATAL_ERROR "no Python.h: install CPython's headers (python3-dev), 3.11 or later")
  endif()
  message(STATUS "no Python.h (python3-dev, 3.11 or later): the Python package is left out")
  return()
endif()

file(GLOB SIFR_PYTHON_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/native/*.c)
add_library(sifr_python MODULE ${SIFR_PYTHON_SOURCES})
target_compile_definitions(sifr_python PRIVATE Py_LIMITED_API=0x030B0000)
target_include_directories(sifr_python SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
target_link_libraries(sifr_python PRIVATE sifr_static)
# Only what Python looks for, so that no name meets one of another library in the process.
target_link_options(sifr_python PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/native/exports.map)
set_target_properties(sifr_python PROPERTIES PREFIX "" OUTPUT_NAME _sifr SUFFIX .abi3.so
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/python/native/exports.map
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/sifr)
install(TARGETS sifr_python DESTINATION sifr COMPONENT python EXCLUDE_FROM_ALL)

# The rest of the package beside it, for `PYTHONPATH=build/python`.
file(GLOB SIFR_PYTHON_FILES CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python
  ${CMAKE_SOURCE_DIR}/python/sifr/*.py ${CMAKE_SOURCE_DIR}/python/sifr/*.pyi
  ${CMAKE_SOURCE_DIR}/python/sifr/py.typed ${CMAKE_SOURCE_DIR}/python/sifr/integrations/*.py)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/sifr/integrations)
foreach(file ${SIFR_PYTHON_FILES})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/${file} ${CMAKE_BINARY_DIR}/python/${file} SYMBOLIC)
endforeach()
