import type { Handler } from 'open-payments-server'

// #region router
/** Sends a request below the path of a cell there, and others to the account's cell. */
export function routeToCells(
  cells: ReadonlyMap<string, Handler>,
  cellOf: (account: string) => Promise<string | undefined>,
): Handler {
  return async (request) => {
    const [, first = ''] = request.url.split(/[/?]/)
    const cell = cells.get(first) ?? cells.get((await cellOf(first)) ?? '')
    return cell ? cell(request) : { status: 404, headers: {}, body: '' }
  }
}
// #endregion router
