// Of the bus: what a store is when it comes out, and answers that wait.

reg f_is_first = 1'b1;
always @(posedge clk) f_is_first <= 1'b0;
`ifdef FORMAL_ALONE
always @(*) if (f_is_first) assume (!rst_n);
`endif

// One store of all, chosen by its number modulo 16, is watched on its way.
(* anyconst *) reg [3:0] f_watched;
reg [3:0] f_aws, f_ws, f_outs;
reg [ADDR_BITS-1:0] f_address;
reg [ID_BITS-1:0] f_master;
reg f_privileged;
reg [31:0] f_data;
reg [63:0] f_time;
always @(posedge clk)
  if (!rst_n) begin
    f_aws <= 4'd0;
    f_ws <= 4'd0;
    f_outs <= 4'd0;
  end else begin
    if (aw_taken) f_aws <= f_aws + 4'd1;
    if (w_taken) f_ws <= f_ws + 4'd1;
    if (store_taken) f_outs <= f_outs + 4'd1;
    if (aw_taken && f_aws == f_watched) begin
      f_address <= s_axi_awaddr;
      f_master <= s_axi_awid;
      f_privileged <= s_axi_awprot[0];
    end
    if (w_taken && f_ws == f_watched) f_data <= s_axi_wdata;
    if ((aw_taken && f_aws == f_watched) || (w_taken && f_ws == f_watched)) f_time <= now;
  end

wire [3:0] f_aws_ahead = f_aws - f_outs;
wire [3:0] f_ws_ahead = f_ws - f_outs;
wire [3:0] f_watched_ahead = f_watched - f_outs;
wire f_has_address = f_watched_ahead < f_aws_ahead;
wire f_has_data = f_watched_ahead < f_ws_ahead;

reg f_answer_waits, f_reading_waits;
reg [ID_BITS-1:0] f_bid, f_rid;
reg [1:0] f_bresp, f_rresp;
reg [31:0] f_rdata;
always @(posedge clk) begin
  f_answer_waits <= rst_n && s_axi_bvalid && !s_axi_bready;
  f_reading_waits <= rst_n && s_axi_rvalid && !s_axi_rready;
  f_bid <= s_axi_bid;
  f_bresp <= s_axi_bresp;
  f_rid <= s_axi_rid;
  f_rresp <= s_axi_rresp;
  f_rdata <= s_axi_rdata;
end

// A reading is the answer of the cycle in which it was asked.
reg f_was_read;
reg [31:0] f_read_data;
reg [ID_BITS-1:0] f_read_master;
always @(posedge clk) begin
  f_was_read <= rst_n && read_valid;
  f_read_data <= read_data;
  f_read_master <= read_master;
end

always @(posedge clk)
  if (rst_n && !f_is_first) begin
    bus_holds_two_at_most: assert (f_aws_ahead <= 4'd2 && f_ws_ahead <= 4'd2);
    bus_numbers_are_its_own:
    assert (next_aw == f_aws[1:0] && next_w == f_ws[1:0] && oldest == f_outs[1:0]);
    bus_keeps_the_address:
    assert (!f_has_address || (addresses[f_watched[0]] == f_address &&
            masters[f_watched[0]] == f_master && privileged[f_watched[0]] == f_privileged));
    bus_keeps_the_data: assert (!f_has_data || data[f_watched[0]] == f_data);
    // The time of a store is that of the later of its handshakes.
    bus_keeps_the_later_time:
    assert (!(f_has_address || f_has_data) || times[f_watched[0]] == f_time);
    // Stores come out in order, each with its own two halves.
    bus_gives_what_it_was_given:
    assert (!(store_valid && f_outs == f_watched) ||
            (store_address == f_address && store_master == f_master && store_data == f_data &&
             store_is_privileged == f_privileged && store_time == f_time));
    bus_answers_wait:
    assert (!f_answer_waits || (s_axi_bvalid && s_axi_bid == f_bid && s_axi_bresp == f_bresp));
    bus_readings_wait:
    assert (!f_reading_waits || (s_axi_rvalid && s_axi_rid == f_rid && s_axi_rdata == f_rdata &&
            s_axi_rresp == f_rresp));
    bus_reading_is_of_its_cycle:
    assert (!f_was_read || (s_axi_rvalid && s_axi_rdata == f_read_data && s_axi_rid == f_read_master));
  end
