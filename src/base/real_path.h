/* Where a path leads. */
#ifndef BASE_REAL_PATH_H
#define BASE_REAL_PATH_H

/* The path from the root, without links, also of what is not there: as realpath(3) of the part that
 * is, and the rest. Free with free(); NULL: no memory, or the path is too long. */
char *base_real_path(const char *path);

#endif
