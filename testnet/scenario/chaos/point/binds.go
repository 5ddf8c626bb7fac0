package point

import (
	"slices"
	"strings"
	"unicode"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// promises says of records which messages carry out what they promise, or rely on it.
var promises = map[string][]grid.Kind{
	"job": {
		wire.MarketNegotiate, wire.MarketAcknowledge, wire.MarketJobSubmission, wire.MarketJobCompletion, wire.MarketCancel,
		wire.BankDraw, wire.BankRedeem, wire.BankReturn, wire.LeaseRequest, wire.LeaseClaim, wire.LeaseRelease,
	},
	"coalloc-home": {wire.LeaseClaim, wire.LeaseRelease, wire.BankDraw},
	"coalloc":      {wire.LeaseClaim, wire.LeaseRelease},
	"lease":        {wire.LeaseGrant, wire.LeaseClaim, wire.LeaseRenewed, wire.LeaseRelease, wire.LeaseReleased, wire.LeaseRevoke, wire.FeeAdvanced},
	"fee/owes":     {wire.FeeAdvance, wire.LeaseClaim, wire.LeaseRelease, wire.BankDraw},
	"fee/owed":     {wire.FeeAdvanced, wire.FeeBill, wire.LeaseReleased},
	"bank/hold":    {wire.BankDrawn, wire.BankRedeemed, wire.BankSettled},
	"bank/bill":    {wire.BankRedeem, wire.MarketJobCompletion},
	"bank/payment": {wire.BankDraw, wire.BankReturn, wire.FeeAgreed, wire.LeaseClaim},
	"bank/account": {wire.BankTransferred},
	"link":         {wire.LeaseInvite, wire.LeaseJoin, wire.LeaseFamily},
	"revoked":      {wire.MemberRevoked, wire.MemberDigest},
}

// does says of records which other orders do.
var does = map[string][]act{
	"job":     {start, kill, renew, answer, answerCancelled},
	"lease":   {startPilot, killPilot, answer},
	"link":    {answer},
	"revoked": {expel, answer, publish},
}

// binds reports whether an order carries out what a record promises.
func binds(record string, o order) bool {
	if o.act == send {
		return slices.Contains(promises[record], o.message)
	}
	return slices.Contains(does[record], o.act)
}

// Kind returns the part of a record's key that all of its kind have.
func Kind(key string) string {
	first, _, _ := strings.Cut(key, "/")
	for end := len(first); end < len(key); {
		part, _, _ := strings.Cut(key[end+1:], "/")
		if strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsLetter(r) }) {
			return key[:end]
		}
		end += 1 + len(part)
	}
	return first
}
