import { newCall, type ServiceContext } from '../../src/service/context.js'
import type { SignedCall } from '../../src/service/signed-call.js'
import { createRunner } from '../../src/service/write/runner.js'

/** The call of a request whose repeats are accepted. */
export function unguardedCall(context: ServiceContext): SignedCall {
  const key = { kid: 'a key', x: 'an x', thumbprint: 'a thumbprint' }
  const { now } = newCall(context)
  const signature = context.random.getRandomValues(new Uint8Array(64))
  const run: SignedCall['run'] = (write) => context.run(write)
  return {
    ...newCall(context),
    proof: { key, signature, createdAt: now },
    replay: undefined,
    run,
  }
}

/** The context of services without HTTP, with its runner. */
export function contextWithRunner(
  context: Omit<ServiceContext, 'run'>,
  { sharesCommits = true }: { readonly sharesCommits?: boolean } = {},
): ServiceContext {
  return { ...context, run: createRunner(context, !sharesCommits) }
}
