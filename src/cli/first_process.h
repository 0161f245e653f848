/* The program as the first process of a container, whose number there is 1. */
#ifndef CLI_FIRST_PROCESS_H
#define CLI_FIRST_PROCESS_H

/* The kernel keeps signals that would end it by default from such a process, so `docker stop` would
 * wait for its whole time. After this call SIGINT, SIGTERM and SIGHUP end it, with 128 + their
 * number, where nothing else is done with them. */
void cli_end_as_others_do(void);

#endif
