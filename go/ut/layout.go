//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

// Offsets, sizes and codes of the session's files: docs/format.md, sections 2 to 5.

const (
	formatVersion = 2
	segmentBytes  = 131072
	pieceBytes    = 16384 // bytes of a segment for which pages are taken at a time
	pieceMask     = pieceBytes - 1
	recordBytes   = 16
	maxSegments   = 8192 // of one ring
	maxPath       = 199  // bytes of the session's directory
)

const (
	controlMagic = 0x31304c5254435455 // "UTCTRL01"
	poolMagic    = 0x31304c4f4f505455 // "UTPOOL01"
	ringMagic    = 0x3130474e49525455 // "UTRING01"
)

// Offsets in the control page.
const (
	controlBytes        = 12288
	controlVersion      = 8
	controlSegmentBytes = 12
	controlClock        = 16
	controlOverflow     = 20
	controlRingSegments = 24
	controlSegments     = 28
	controlOn           = 32
	controlAlive        = 36
	controlHeads        = 44
	controlLost         = 72
	controlNamesLost    = 80
	controlSwitched     = 4096
)

// Values of the lowest two bits at controlOn.
const (
	onModes = 3
	onNone  = 0
	onAll   = 1
)

// Clocks of a session.
const (
	clockCounter      = 1
	clockMonotonicRaw = 2
	clockMonotonic    = 3
)

// Overflow policies.
const (
	overflowGrow      = 0
	overflowOverwrite = 2
	overflowBlock     = 3
)

// The pool. Each queue has `taken` at its begin and `put` 64 bytes later.
const (
	poolVersion  = 8
	poolNextRing = 12
	poolHeads    = 16
	poolSegments = 20
	poolQueues   = 128
	queueBytes   = 128
	queuePut     = 64
	poolNumbers  = 4096
	mostHeads    = 8192
	mostSegments = 524288
)

// Queues of the pool.
const (
	queueHeadsReady = iota
	queueHeads
	queueSegmentsReady
	queueSegments
)

// Offsets in the head of a ring.
const (
	headBytes        = 77824
	headReadyBytes   = 8192
	headVersion      = 8
	headSegmentBytes = 12
	headRing         = 16
	headMaxSegments  = 20
	headPid          = 24
	headTid          = 28
	headLanguage     = 32
	headState        = 40
	headNamespace    = 44
	headSpanReadings = 48
	headPublished    = 64
	headDropped      = 72
	headOldest       = 80
	headSamples      = 96
	headLeast        = 100
	headTicks        = 104
	headSquares      = 112
	headTail         = 128
	headHasTable     = 136
	headUses         = 4096
)

const (
	languageGo   = 3
	stateOpen    = 1
	spansWait    = 1
	readsOfACost = 8 // readings in a sample of the read cost
)

// The last 16 bits of a record: CPU, kind and flag. All events of this recorder are instants, and
// whether the thread was descheduled is not known of any.
const (
	cpuUnknown      = 0x7ff
	flagUnknown     = 2 << 14
	tailInstant     = flagUnknown | cpuUnknown
	tailContinue    = 7<<11 | cpuUnknown
	continuesAsWide = 1
	continuesAsPad  = 2
	continuesAsGap  = 3
)

// Names. Numbers from firstNumber to otherNames-1 are made for names.
const (
	nameMagic   = 0x4e55 // "UN"
	nameEvent   = 1
	nameBytes   = 255
	firstNumber = 0x4000
	otherNames  = 0x7fff
	numbers     = otherNames - firstNumber
)
