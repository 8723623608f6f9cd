/* SPDX-License-Identifier: MIT */
/* The entry of the command `tanso`; the rest of src/cli is linked into its tests too. */
#include "cli/command.h"

int main(int argc, char **argv) { return tn__cli_main(argc, argv); }
