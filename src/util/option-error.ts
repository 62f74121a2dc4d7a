/** An invalid option that the host passed to the library. */
export class OptionError extends TypeError {
  readonly code = 'ERR_INVALID_OPTION'
  /** Name of the invalid option. */
  readonly option: string

  constructor(option: string, problem: string) {
    super(`${option} ${problem}`)
    this.option = option
  }
}

export function invalidOption(option: string, problem: string): OptionError {
  return new OptionError(option, problem)
}
