/** An invalid option that the host passed to the library. */
export interface OptionError extends TypeError {
  readonly code: 'ERR_INVALID_OPTION'
  /** Name of the invalid option. */
  readonly option: string
}

export function invalidOption(option: string, problem: string): OptionError {
  return Object.assign(new TypeError(`${option} ${problem}`), {
    code: 'ERR_INVALID_OPTION' as const,
    option,
  })
}
