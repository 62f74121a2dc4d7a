/** An invalid argument of a call of the host. The call has changed nothing. */
export class ArgumentError extends TypeError {
  readonly code = 'ERR_INVALID_ARGUMENT'
  /** The path of the invalid value from the name of its parameter, such as `funds.amount.value`. */
  readonly argument: string

  constructor(argument: string, problem: string) {
    super(`${argument} ${problem}`)
    this.argument = argument
  }
}
