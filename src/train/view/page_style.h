/* Style and script of the page. The policy in its head names both by their hashes, so that the
 * browser runs no other script, whatever a text in the page says. */
#ifndef TRAIN_VIEW_PAGE_STYLE_H
#define TRAIN_VIEW_PAGE_STYLE_H

extern const char train_page_style[];
extern const char train_page_script[];

#endif
