/**
 * The identifier of a person: an absolute URI, such as a wallet address.
 *
 * @see RFC 9493; Open Payments OpenAPI, schema `subject`
 */
export interface SubjectId {
  readonly id: string
  readonly format: 'uri'
}
