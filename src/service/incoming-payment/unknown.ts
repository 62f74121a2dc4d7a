import { refused } from '../../core/decision.js'

export const unknownPayment = refused('payment_unknown', 'the incoming payment does not exist')
