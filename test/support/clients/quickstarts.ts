/** Quickstarts by name, in the order in which their pages are. */
export type Snippets = Readonly<Record<string, () => Promise<unknown>>>

/** Why a quickstart failed: the status and the code of the error, or its message. */
function problemOf(error: unknown): string {
  const { status, code, message } = error as { status?: number; code?: string; message?: string }
  return status === undefined ? String(message) : `${status} ${code}`
}

/** Runs all quickstarts, also after one that fails, and returns what became of each. */
export async function outcomesOf(snippets: Snippets): Promise<Readonly<Record<string, string>>> {
  const outcomes: Record<string, string> = {}
  for (const [name, run] of Object.entries(snippets)) {
    outcomes[name] = await run().then(() => 'works', problemOf)
  }
  return outcomes
}

/** What is expected if all work, with exceptions. */
export function allWork(
  snippets: Snippets,
  except: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const works = Object.keys(snippets).map((name) => [name, 'works'] as const)
  return { ...Object.fromEntries(works), ...except }
}

/** The variables that a developer copies from the output of one quickstart into the settings of the next. */
export function variables(): (name: string, value?: string) => string {
  const values = new Map<string, string>()
  return (name, value) => {
    if (value !== undefined) values.set(name, value)
    const known = values.get(name)
    if (known === undefined) throw new Error(`no quickstart has printed ${name}`)
    return known
  }
}
