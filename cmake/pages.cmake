# The manual pages and the completion of shells, which the program's own table of options makes
# (scripts/make-pages.sh); `make install` lays them down where each looks. A program for another
# machine, or under sanitizers, is not run for them.
if(CMAKE_CROSSCOMPILING OR SIFR_SANITIZE)
  return()
endif()
set(pages ${CMAKE_BINARY_DIR}/pages)
file(GLOB makers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/pages/*)
add_custom_command(OUTPUT ${pages}/table
  DEPENDS sifr ${makers} ${CMAKE_SOURCE_DIR}/scripts/make-pages.sh ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  COMMAND ${CMAKE_SOURCE_DIR}/scripts/make-pages.sh $<TARGET_FILE:sifr> ${pages}
  COMMENT "Manual pages and completion" VERBATIM)
add_custom_target(pages ALL DEPENDS ${pages}/table)
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${pages}/bash/sifr DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${pages}/zsh/_sifr DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${pages}/fish/sifr.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
