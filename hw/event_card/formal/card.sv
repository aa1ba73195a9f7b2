// The whole card, seen from its ports alone: what is streamed, against what was
// stored. Two masters, four places, two gaps; bounded (run.py says how deep).
module card (
    input clk
);
  (* anyseq *) reg valid, bready, arvalid, rready, tready;
  (* anyseq *) reg [11:0] address, araddr;
  (* anyseq *) reg awid, arid;
  (* anyseq *) reg [31:0] data;
  (* anyseq *) reg privileged;
  wire awready, wready, bvalid, rvalid, tvalid;
  wire [127:0] record;

  reg rst_n = 1'b0;
  always @(posedge clk) rst_n <= 1'b1;

  event_card #(
      .ID_BITS(1),
      .EVENT_BITS(7),
      .DEPTH_LOG2(2),
      .GAPS_LOG2(1),
      .COUNT_BITS(5)
  ) dut (
      .clk(clk),
      .rst_n(rst_n),
      .tick_clk(1'b0),
      .s_axi_awvalid(valid),
      .s_axi_awready(awready),
      .s_axi_awaddr(address),
      .s_axi_awid(awid),
      .s_axi_awprot({2'b00, privileged}),
      .s_axi_wvalid(valid),
      .s_axi_wready(wready),
      .s_axi_wdata(data),
      .s_axi_wstrb(4'hf),
      .s_axi_bvalid(bvalid),
      .s_axi_bready(bready),
      .s_axi_arvalid(arvalid),
      .s_axi_araddr(araddr),
      .s_axi_arid(arid),
      .s_axi_arprot(3'd0),
      .s_axi_rvalid(rvalid),
      .s_axi_rready(rready),
      .m_axis_tvalid(tvalid),
      .m_axis_tready(tready),
      .m_axis_tdata(record)
  );

  // Both halves of a store are offered together here (apart: task "bus").
  wire stored = rst_n && valid && awready && wready;
  wire is_event = address[11:9] != 3'd0;
  wire left = rst_n && tvalid && tready;
  wire is_continuation = record[125:123] == 3'd7;
  wire is_gap = is_continuation && record[95:64] == 32'd3;

  // Only what this is about is stored: events, the first enabling, the policy.
  wire enables = address == 12'h008;
  wire [11:0] window = address;
  always @(*) begin
    assume (is_event || (enables && data[0]) || window == 12'h00c || window == 12'h024);
  end

  // Events are on from the first enabling on; time counts from the reset.
  reg is_on = 1'b0;
  reg [4:0] sent = 5'd0, streamed = 5'd0, told = 5'd0;
  reg [63:0] now = 64'd0;
  reg has_begun = 1'b0;
  wire sends = stored && is_event && is_on;
  always @(posedge clk) begin
    if (stored && enables) is_on <= 1'b1;
    has_begun <= rst_n;
    if (has_begun) now <= now + 64'd1;
    if (sends) sent <= sent + 5'd1;
    if (left && !is_continuation) streamed <= streamed + 5'd1;
    if (left && is_gap) told <= told + record[4:0];
  end

  // One event of all that there could be: stored how often, streamed how often.
  (* anyconst *) reg [63:0] x_time;
  (* anyconst *) reg [31:0] x_payload;
  (* anyconst *) reg [6:0] x_event;
  (* anyconst *) reg [2:0] x_kind;
  (* anyconst *) reg x_master, x_privileged;
  wire is_x_stored = sends && now == x_time && data == x_payload && address[8:2] == x_event &&
      address[11:9] == x_kind + 3'd1 && awid == x_master && privileged == x_privileged;
  wire is_x_left = left && !is_continuation && record[63:0] == x_time && record[95:64] == x_payload &&
      record[111:96] == {9'd0, x_event} &&
      record[127:112] == {1'b1, x_privileged, x_kind, 10'd0, x_master};
  reg [3:0] x_stored = 4'd0, x_left = 4'd0;
  always @(posedge clk) begin
    if (is_x_stored) x_stored <= x_stored + 4'd1;
    if (is_x_left) x_left <= x_left + 4'd1;
  end

  // A master numbers its events in their payloads; so they must come out.
  (* anyconst *) reg m_master;
  reg [31:0] m_next = 32'd0, m_last = 32'd0;
  reg m_has_last = 1'b0;
  wire m_left = left && !is_continuation && record[112] == m_master;
`ifndef BURST
  always @(*) if (valid && is_event && awid == m_master) assume (data == m_next);
`endif
  always @(posedge clk) begin
    if (stored && is_event && awid == m_master) m_next <= m_next + 32'd1;
    if (m_left) begin
      m_has_last <= 1'b1;
      m_last <= record[95:64];
    end
  end

`ifdef BURST
  // Seven stores of whatever may come, under one policy, then nothing and everything taken:
  // few enough possibilities to look until the card is empty again.
  (* anyconst *) reg [1:0] b_policy;
  reg [5:0] cycle = 6'd0;
  always @(posedge clk) if (rst_n && cycle != 6'd63) cycle <= cycle + 6'd1;
  always @(*) begin
    assume (b_policy != 2'd3);
    if (cycle < 6'd2) assume (valid);
    if (cycle == 6'd0) assume (address == 12'h00c && data == {30'd0, b_policy});
    if (cycle == 6'd1) assume (address == 12'h008 && data == 32'd1);
    if (cycle >= 6'd2) assume (is_event && address[8:0] == 9'd0 && address[11:9] == 3'd1);
    if (cycle >= 6'd2) assume (data == {24'd0, 2'd0, cycle});
    if (cycle >= 6'd9) assume (!valid && tready && bready);
    assume (!arvalid && rready && !privileged && bready);
  end
`endif

  // For so many cycles nothing was stored and everything was taken.
  reg [4:0] quiet = 5'd0;
  always @(posedge clk)
    if (valid || !tready || !bready || !rst_n) quiet <= 5'd0;
    else if (quiet != 5'd31) quiet <= quiet + 5'd1;

  always @(posedge clk)
    if (rst_n) begin
      card_halves_are_taken_together: assert (awready == wready);
      // No record without a store: the very same, and no oftener.
      card_no_record_without_a_store: assert (x_left + is_x_left <= x_stored);
      // None is told that was not sent; none is missing once all is out.
      card_tells_no_more_than_was_sent: assert (streamed + told <= sent);
      card_none_lost_uncounted: assert (quiet < 5'd13 || streamed + told == sent);
      // What a master stored first comes out first.
      card_order_per_master: assert (!(m_left && m_has_last) || record[95:64] > m_last);
    end
endmodule
