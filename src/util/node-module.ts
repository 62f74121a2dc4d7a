interface MaybeNode {
  readonly process?: { readonly getBuiltinModule?: (id: string) => unknown }
}

/**
 * Returns a built-in module of Node, or `undefined` on other runtimes. Uses no import, so that the library can be
 * bundled for those runtimes.
 */
export function nodeModule<Module>(id: `node:${string}`): Module | undefined {
  const builtin = (globalThis as MaybeNode).process?.getBuiltinModule?.(id)
  return builtin as Module | undefined
}
