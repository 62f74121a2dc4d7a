/** The command line is not valid. The message says what is wrong. */
export class UsageError extends Error {}
