// The card's registers: what they hold, and what a write to them does.
module card_registers #(
    parameter int          EVENT_BITS = 16,
    parameter int          ID_BITS = 3,
    parameter int          DEPTH_LOG2 = 9,
    parameter int          GAPS_LOG2 = 3,
    parameter int          COUNT_BITS = 64,
    parameter bit          ASYNC_TICK = 1'b0,
    parameter logic [31:0] CLOCK_HZ = 32'd0
) (
    input  logic                  clk,
    input  logic                  rst_n,
    // A write to a register, with all its bytes; `write_is_error` answers it.
    input  logic                  write,
    input  logic [7:0]            write_register,
    input  logic [31:0]           write_data,
    output logic                  write_is_error,
    // A read; the data answer it in the same cycle.
    input  logic                  read,
    input  logic [7:0]            read_register,
    input  logic [ID_BITS-1:0]    read_master,
    output logic [31:0]           read_data,
    output logic                  read_is_error,
    // What the card does.
    output logic                  is_enabled,
    output logic                  start,
    output logic [1:0]            policy,
    output logic [31:0]           mask,
    output logic [31:0]           stall_limit,
    output logic [31:0]           tick_cycles,
    output logic                  set_tick,
    output logic                  preset,
    output logic [63:0]           preset_time,
    output logic                  clear_high_water,
    // What the card knows.
    input  logic                  tick_is_busy,
    input  logic [63:0]           now,
    input  logic [DEPTH_LOG2:0]   level,
    input  logic [DEPTH_LOG2:0]   high_water,
    input  logic [COUNT_BITS-1:0] written,
    input  logic [COUNT_BITS-1:0] lost
);
  localparam logic [31:0] PARAMETERS = {
    5'd0, ASYNC_TICK, 5'(GAPS_LOG2), 5'(DEPTH_LOG2), 5'(EVENT_BITS), 11'd1 << ID_BITS
  };

  // Tick and time are set before the first event and stay: a stream has one
  // clock from its first record on.
  logic has_started;
  logic [31:0] staged_upper, latched;
  wire [63:0] written_64 = 64'(written);
  wire [63:0] lost_64 = 64'(lost);

  wire writes_tick = write && write_register == event_card_pkg::REG_TICK;
  wire tick_is_good = !has_started && !tick_is_busy && write_data != 32'd0;
  wire writes_control = write && write_register == event_card_pkg::REG_CONTROL;

  // What a write needs beside its register.
  always_comb begin
    case (write_register)
      event_card_pkg::REG_CONTROL, event_card_pkg::REG_MASK, event_card_pkg::REG_MASK_SET,
          event_card_pkg::REG_MASK_CLEAR, event_card_pkg::REG_STALL_LIMIT,
          event_card_pkg::REG_HIGH_WATER:
      write_is_error = 1'b0;
      event_card_pkg::REG_POLICY: write_is_error = write_data > 32'd2;
      event_card_pkg::REG_TICK: write_is_error = !tick_is_good;
      event_card_pkg::REG_TIME_LO, event_card_pkg::REG_TIME_HI: write_is_error = has_started;
      default: write_is_error = 1'b1;
    endcase
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      is_enabled       <= 1'b0;
      has_started      <= 1'b0;
      start            <= 1'b0;
      policy           <= event_card_pkg::POLICY_DROP;
      mask             <= 32'hffff_ffff;
      stall_limit      <= event_card_pkg::STALL_LIMIT_RESET;
      tick_cycles      <= 32'd1;
      set_tick         <= 1'b0;
      staged_upper     <= 32'd0;
      preset           <= 1'b0;
      preset_time      <= 64'd0;
      clear_high_water <= 1'b0;
    end else begin
      start            <= writes_control && write_data[0] && !has_started;
      set_tick         <= writes_tick && tick_is_good;
      preset           <= 1'b0;
      clear_high_water <= 1'b0;
      if (write && !write_is_error) begin
        case (write_register)
          event_card_pkg::REG_CONTROL: begin
            is_enabled  <= write_data[0];
            has_started <= has_started || write_data[0];
          end
          event_card_pkg::REG_POLICY: policy <= write_data[1:0];
          event_card_pkg::REG_TICK: tick_cycles <= write_data;
          event_card_pkg::REG_MASK: mask <= write_data;
          event_card_pkg::REG_MASK_SET: mask <= mask | write_data;
          event_card_pkg::REG_MASK_CLEAR: mask <= mask & ~write_data;
          event_card_pkg::REG_STALL_LIMIT: stall_limit <= write_data;
          event_card_pkg::REG_HIGH_WATER: clear_high_water <= 1'b1;
          event_card_pkg::REG_TIME_HI: staged_upper <= write_data;
          event_card_pkg::REG_TIME_LO: begin
            preset      <= 1'b1;
            preset_time <= {staged_upper, write_data};
          end
          default: ;
        endcase
      end
    end
  end

  logic [31:0] upper;
  logic captures;
  always_comb begin
    captures = read;
    case (read_register)
      event_card_pkg::REG_TIME_LO: upper = now[63:32];
      event_card_pkg::REG_WRITTEN_LO: upper = written_64[63:32];
      event_card_pkg::REG_LOST_LO: upper = lost_64[63:32];
      default: begin
        upper = 32'd0;
        captures = 1'b0;
      end
    endcase
  end

`ifdef PROOFS
  wire [2**ID_BITS*32-1:0] f_latches;
`endif

  read_latch #(
      .ID_BITS(ID_BITS)
  ) u_latch (
      .clk(clk),
      .rst_n(rst_n),
      .capture(captures),
      .master(read_master),
      .upper(upper),
      .latched(latched)
`ifdef PROOFS
      ,
      .f_latches(f_latches)
`endif
  );

  always_comb begin
    read_is_error = 1'b0;
    case (read_register)
      event_card_pkg::REG_ID: read_data = event_card_pkg::ID;
      event_card_pkg::REG_PARAMETERS: read_data = PARAMETERS;
      event_card_pkg::REG_CONTROL: read_data = {31'd0, is_enabled};
      event_card_pkg::REG_POLICY: read_data = {30'd0, policy};
      event_card_pkg::REG_TICK: read_data = tick_cycles;
      event_card_pkg::REG_CLOCK_HZ: read_data = CLOCK_HZ;
      event_card_pkg::REG_MASK, event_card_pkg::REG_MASK_SET, event_card_pkg::REG_MASK_CLEAR:
      read_data = mask;
      event_card_pkg::REG_STALL_LIMIT: read_data = stall_limit;
      event_card_pkg::REG_LEVEL: read_data = 32'(level);
      event_card_pkg::REG_HIGH_WATER: read_data = 32'(high_water);
      event_card_pkg::REG_TIME_LO: read_data = now[31:0];
      event_card_pkg::REG_WRITTEN_LO: read_data = written_64[31:0];
      event_card_pkg::REG_LOST_LO: read_data = lost_64[31:0];
      event_card_pkg::REG_TIME_HI, event_card_pkg::REG_WRITTEN_HI, event_card_pkg::REG_LOST_HI:
      read_data = latched;
      default: begin
        read_data = 32'd0;
        read_is_error = 1'b1;
      end
    endcase
  end
`ifdef PROOFS
`include "card_registers_properties.svh"
`endif
endmodule
