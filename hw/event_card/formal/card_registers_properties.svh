// A 64-bit register that a master reads by its lower, then its upper word is
// one value, whatever other masters read in between and whatever time does.

reg f_is_first = 1'b1;
always @(posedge clk) f_is_first <= 1'b0;
`ifdef FORMAL_ALONE
always @(*) if (f_is_first) assume (!rst_n);
`endif

(* anyconst *) reg [ID_BITS-1:0] f_master;
reg f_has_read;
reg [31:0] f_upper;
wire f_reads = read && read_master == f_master;
always @(posedge clk)
  if (!rst_n) f_has_read <= 1'b0;
  else if (f_reads && read_register == event_card_pkg::REG_TIME_LO) begin
    f_has_read <= 1'b1;
    f_upper <= now[63:32];
  end else if (f_reads && read_register == event_card_pkg::REG_WRITTEN_LO) begin
    f_has_read <= 1'b1;
    f_upper <= written_64[63:32];
  end else if (f_reads && read_register == event_card_pkg::REG_LOST_LO) begin
    f_has_read <= 1'b1;
    f_upper <= lost_64[63:32];
  end

// Tick and preset after the first enabling would make one stream have two clocks.
reg f_was_enabled;
always @(posedge clk)
  if (!rst_n) f_was_enabled <= 1'b0;
  else if (is_enabled) f_was_enabled <= 1'b1;

always @(posedge clk)
  if (rst_n && !f_is_first) begin
    registers_keep_what_was_captured:
    assert (!f_has_read || f_latches[f_master*32+:32] == f_upper);
    registers_never_tear_the_time:
    assert (!(f_reads && read_register == event_card_pkg::REG_TIME_HI && f_has_read) ||
            read_data == f_upper);
    registers_never_tear_a_count:
    assert (!(f_reads && f_has_read && (read_register == event_card_pkg::REG_WRITTEN_HI ||
            read_register == event_card_pkg::REG_LOST_HI)) || read_data == f_upper);
    registers_lower_word_is_of_now:
    assert (!(f_reads && read_register == event_card_pkg::REG_TIME_LO) || read_data == now[31:0]);
    registers_know_the_start: assert (!(is_enabled || f_was_enabled) || has_started);
    registers_keep_the_clock: assert (!f_was_enabled || !(set_tick || preset));
    registers_have_a_tick: assert (tick_cycles != 32'd0 && policy != 2'd3);
  end
