/* The rows of docs/faults.md: which faults there are, and what each gets wrong. */
#ifndef GCK_TESTS_FAULTS_ROWS_H
#define GCK_TESTS_FAULTS_ROWS_H

typedef struct fault_row {
  const char *kernel; /* in faults.so; its name up to a '.' is the fault's id */
  const char *op;
  const char *what;
} fault_row;

extern const fault_row fault_rows[]; /* ended by a NULL kernel */

/* Faults of a checker, not of a kernel: what guards against each here. */
typedef struct checker_row {
  const char *id, *what, *guard;
} checker_row;

extern const checker_row checker_rows[]; /* ended by a NULL id */

#endif
