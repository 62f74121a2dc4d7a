/** What a link does with a request. Without a reply, the other end sees a broken connection. */
export type Fate =
  | 'arrives'
  | 'request lost'
  | 'reply lost'
  | 'arrives late'
  | 'answered in between'
  | 'forwarded and answered in between'

export const fates: readonly Fate[] = [
  'request lost',
  'reply lost',
  'arrives late',
  'answered in between',
  'forwarded and answered in between',
]

/** What proxies answer without asking, or without waiting. */
export const statuses: readonly number[] = [503, 429, 404, 502]

type Handle = (request: Request) => Promise<Response>

/** Carries a request as its fate says. Resolves to `undefined` if there is no reply. */
export async function carry(
  handle: Handle,
  request: Request,
  { fate, status }: { readonly fate: Fate; readonly status: number },
  /** Carries the request out at a later time. */
  later: (work: () => Promise<unknown>) => void,
): Promise<Response | undefined> {
  const inBetween = () => new Response('<h1>An error</h1>', { status })
  switch (fate) {
    case 'arrives':
      return handle(request)
    case 'request lost':
      return undefined
    case 'reply lost':
      await handle(request)
      return undefined
    case 'arrives late':
      later(() => handle(request))
      return undefined
    case 'answered in between':
      return inBetween()
    case 'forwarded and answered in between':
      await handle(request)
      return inBetween()
  }
}
