/* SPDX-License-Identifier: MIT */
/* The entry of the command `tanso`; the rest of src/cli is linked into its tests too. */
#include <fcntl.h>
#include <signal.h>
#include "cli/command.h"

/* Who starts a program with its standard streams closed would have it open a file of its own in their place and print
 * into it. They are opened so that using them fails, as it should. */
static void hold_streams(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
            return;
}

int main(int argc, char **argv)
{
    hold_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit (ulimit -f) is an error like a full disk, not the end */
    return tn__cli_main(argc, argv);
}
