const managers = ['npm', 'pnpm', 'yarn', 'bun'] as const

/** A program that installs packages and runs scripts. */
export type PackageManager = (typeof managers)[number]

/** Returns the package manager that runs this program, as it says in the environment; npm if it is not known. */
export function managerIn(
  environment: Readonly<Record<string, string | undefined>>,
): PackageManager {
  const [name] = environment['npm_config_user_agent']?.split('/') ?? []
  return managers.find((known) => known === name) ?? 'npm'
}

/**
 * Returns a text with the commands of a package manager in place of those of npm. All of them run a script by `run`;
 * `bun test` would be another test runner.
 */
export function commandsOf(manager: PackageManager, text: string): string {
  if (manager === 'npm') return text
  return text
    .replace(/\bnpm (?:run )?(test|start|dev|build|migrate|types)\b/g, `${manager} run $1`)
    .replace(/\bnpm install\b/g, `${manager} install`)
}
