/** A mistake in how the host set the library up, found when it does so. */
export interface OptionError extends TypeError {
  readonly code: 'ERR_INVALID_OPTION'
  /** The option at fault. */
  readonly option: string
}

export function invalidOption(option: string, problem: string): OptionError {
  return Object.assign(new TypeError(`${option} ${problem}`), {
    code: 'ERR_INVALID_OPTION' as const,
    option,
  })
}
