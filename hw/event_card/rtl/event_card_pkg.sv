// Numbers that the blocks of the event card, its tests and its users share.
// README.md says what each register means; docs/format.md what a record is.
package event_card_pkg;
  // Overflow policies: what happens to a store while the card is full.
  localparam logic [1:0] POLICY_DROP = 2'd0;
  localparam logic [1:0] POLICY_OVERWRITE = 2'd1;
  localparam logic [1:0] POLICY_BACK_PRESSURE = 2'd2;

  // Registers: offsets in slot 0 of the card's window.
  localparam logic [7:0] REG_ID = 8'h00;
  localparam logic [7:0] REG_PARAMETERS = 8'h04;
  localparam logic [7:0] REG_CONTROL = 8'h08;
  localparam logic [7:0] REG_POLICY = 8'h0c;
  localparam logic [7:0] REG_TICK = 8'h10;
  localparam logic [7:0] REG_CLOCK_HZ = 8'h14;
  localparam logic [7:0] REG_MASK = 8'h18;
  localparam logic [7:0] REG_MASK_SET = 8'h1c;
  localparam logic [7:0] REG_MASK_CLEAR = 8'h20;
  localparam logic [7:0] REG_STALL_LIMIT = 8'h24;
  localparam logic [7:0] REG_LEVEL = 8'h28;
  localparam logic [7:0] REG_HIGH_WATER = 8'h2c;
  localparam logic [7:0] REG_TIME_LO = 8'h30;
  localparam logic [7:0] REG_TIME_HI = 8'h34;
  localparam logic [7:0] REG_WRITTEN_LO = 8'h38;
  localparam logic [7:0] REG_WRITTEN_HI = 8'h3c;
  localparam logic [7:0] REG_LOST_LO = 8'h40;
  localparam logic [7:0] REG_LOST_HI = 8'h44;

  // "UTC1": what REG_ID reads as.
  localparam logic [31:0] ID = 32'h5554_4331;
  // Cycles that a store is held at most, until somebody writes REG_STALL_LIMIT.
  localparam logic [31:0] STALL_LIMIT_RESET = 32'd65535;

  // A record's last 16 bits: master 0..11, kind 11..14, flag 14..16.
  localparam logic [2:0] KIND_CONTINUATION = 3'd7;
  localparam logic [10:0] MASTER_UNKNOWN = 11'd2047;
  // The card knows nothing of schedulers; it does know who may do what.
  localparam logic [1:0] FLAG_USER = 2'd2;
  localparam logic [1:0] FLAG_SUPERVISOR = 2'd3;
  // Payloads of continuations.
  localparam logic [31:0] CONTINUATION_GAP = 32'd3;
  localparam logic [31:0] CONTINUATION_CARD = 32'd4;
  localparam logic [15:0] STREAM_VERSION = 16'd1;
endpackage
