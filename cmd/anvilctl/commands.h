/*
 * cmd/anvilctl/commands.h -- every command, each an object of its own file.
 */
#ifndef CMD_ANVILCTL_COMMANDS_H
#define CMD_ANVILCTL_COMMANDS_H

#include <stdio.h>

#include "cmd/anvilctl/args.h"

extern const struct command command_ps, command_inspect, command_call, command_queue,
    command_why, command_logs, command_run, command_cancel, command_abandon,
    command_project_create, command_project_list, command_project_show, command_project_move,
    command_project_rm, command_webhook_set, command_webhook_rotate, command_webhook_rm,
    command_webhook_list, command_deliveries, command_user_bootstrap, command_user_invite,
    command_user_list, command_user_disable, command_user_enable, command_user_reset_password,
    command_keys_rotate, command_keys_status, command_reindex, command_drain, command_resume,
    command_lint, command_history, command_health, command_check, command_version,
    command_backup, command_restore, command_project_give;

/* In the order of the help; ends with NULL. */
extern const struct command *const commands[];

/* What the program, a group ("user") or one command does. */
void help_program(FILE *out);
void help_group(FILE *out, const char *group);
void help_command(FILE *out, const struct command *c);

#endif
