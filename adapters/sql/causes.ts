/** No chain of causes is longer, except one in which an error causes itself. */
const causesMax = 16

/** Returns an error and its causes: services of hosts, query builders and ORMs wrap the errors of the driver. */
export function causesOf(error: unknown): readonly Error[] {
  const found: Error[] = []
  for (let each = error; each instanceof Error && found.length < causesMax; each = each.cause) {
    found.push(each)
  }
  return found
}
