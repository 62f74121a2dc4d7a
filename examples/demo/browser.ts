/** Acts as the resource owner on the consent page, who may choose an account, with a cookie and without following the redirect. */
export async function decide(
  redirect: string,
  decision: 'approve' | 'deny',
  account?: string,
): Promise<{ readonly page: string; readonly location: URL | undefined }> {
  const shown = await fetch(redirect)
  const page = await shown.text()
  const [cookie = ''] = shown.headers.getSetCookie().map((line) => line.split(';', 1)[0] ?? '')
  const answered = await fetch(redirect, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ decision, ...(account && { account }) }),
  })
  const location = answered.headers.get('location')
  return { page, location: location === null ? undefined : new URL(location) }
}
