// The whole card, filled, overflowing and emptied.
`define BURST
`include "card.sv"
