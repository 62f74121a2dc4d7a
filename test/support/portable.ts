import { verify } from 'node:crypto'
import { expect, vi } from 'vitest'

/** Imports a module again, as a runtime without Node's built-in modules would. */
export function importWithoutNode<Module>(load: () => Promise<Module>): Promise<Module> {
  return importWithBuiltins(() => undefined, load)
}

/**
 * Imports a module again, in a runtime whose built-in modules are those that `find` returns, also later. Fails if the
 * import did not look for them, because the module may then come from the cache.
 */
export async function importWithBuiltins<Module>(
  find: (id: string) => unknown,
  load: () => Promise<Module>,
): Promise<Module> {
  vi.resetModules()
  const original = process.getBuiltinModule
  let lookedUp = false
  Object.defineProperty(process, 'getBuiltinModule', {
    configurable: true,
    get() {
      lookedUp = true
      return find
    },
  })
  try {
    const module = await load()
    if (!lookedUp) throw new Error('no built-in module was asked for')
    return module
  } finally {
    Object.defineProperty(process, 'getBuiltinModule', { configurable: true, value: original })
    vi.resetModules()
  }
}

/** Makes Web Crypto refuse Ed25519 until mocks are restored, like a runtime that lacks it. */
export function withoutWebEd25519(): void {
  const unsupported = new DOMException('Unrecognized algorithm name', 'NotSupportedError')
  vi.spyOn(crypto.subtle, 'importKey').mockRejectedValue(unsupported)
}

/** Imports a module again, as Cloudflare Workers would, whose requests must not wait for each other. */
export async function importOnWorkers<Module>(load: () => Promise<Module>): Promise<Module> {
  const find = process.getBuiltinModule.bind(process)
  const alone = {
    'node:crypto': { ...find('node:crypto'), verify: verifyAtOnce },
    'node:timers': { setImmediate: unused },
  }
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
  try {
    return await importWithBuiltins((id) => alone[id as keyof typeof alone] ?? find(id), load)
  } finally {
    vi.unstubAllGlobals()
  }
}

/** Verifications that end together would make a request wait for another one. */
function unused(): never {
  throw new Error('setImmediate was called')
}

const verifyAtOnce: typeof verify = (...given: unknown[]) => {
  expect(given).toHaveLength(4)
  return verify(...(given as Parameters<typeof verify>)) as never
}
