# A room is one static library per folder below src/. DEPENDS names the rooms on lower floors that it may use;
# LIBRARIES names third-party targets, which stay private: public headers must not show them.
function(qgen_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(qgen_${name} STATIC ${ROOM_SOURCES})
  list(TRANSFORM ROOM_DEPENDS PREPEND qgen_)
  target_link_libraries(qgen_${name} PUBLIC qgen_options ${ROOM_DEPENDS} PRIVATE ${ROOM_LIBRARIES})
  target_include_directories(qgen_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()

# A test program of one room: tests/<room>/*_test.cpp, registered with CTest case by case under the room's label.
function(qgen_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name}_tests ${TEST_SOURCES})
  list(TRANSFORM TEST_DEPENDS PREPEND qgen_)
  target_link_libraries(${name}_tests PRIVATE ${TEST_DEPENDS} ${TEST_LIBRARIES} GTest::gmock GTest::gtest
    GTest::gtest_main)
  # What takes time when tests run is what they test; compiling tests themselves should take little.
  if(QGEN_SANITIZE)
    target_compile_options(${name}_tests PRIVATE -O0)
  else()
    target_compile_options(${name}_tests PRIVATE -O1 -g1)
  endif()
  target_include_directories(${name}_tests PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name}_tests PRIVATE QGEN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
  gtest_discover_tests(${name}_tests NO_PRETTY_VALUES PROPERTIES LABELS ${name} TIMEOUT 600 DISCOVERY_TIMEOUT 60)
endfunction()
