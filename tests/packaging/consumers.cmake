# The consumer's programs, strict about warnings so that a warning in the header is an error here. Its standards,
# C11 and C++11, are the oldest that the header promises.
add_executable(consumer_c ${CMAKE_CURRENT_LIST_DIR}/consumer.c)
add_executable(consumer_cxx ${CMAKE_CURRENT_LIST_DIR}/consumer.cpp)
foreach(program consumer_c consumer_cxx)
  target_link_libraries(${program} PRIVATE wsgemm::wsgemm)
  target_compile_options(${program} PRIVATE -Wall -Wextra -Wpedantic -Werror)
endforeach()
set_target_properties(consumer_c PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF C_STANDARD_REQUIRED ON)
set_target_properties(consumer_cxx PROPERTIES CXX_STANDARD 11 CXX_EXTENSIONS OFF CXX_STANDARD_REQUIRED ON)
