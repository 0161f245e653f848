/* Numbers as Python's repr writes them. */
#ifndef TRAIN_PYTHON_NUMBER_H
#define TRAIN_PYTHON_NUMBER_H

/* The fewest digits that read back as the same number: "0.1", "1e-05", "65536.0", "nan". Returns
 * out. */
const char *train_python_number(double value, char out[32]);

#endif
