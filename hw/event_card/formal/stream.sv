// The stream with free inputs.
module stream (
    input clk
);
  (* anyseq *) reg rst_n, start, item_valid, item_is_event, item_is_privileged, item_has_gap, tready;
  (* anyseq *) reg [31:0] tick_cycles, item_payload;
  (* anyseq *) reg [63:0] item_time;
  (* anyseq *) reg [6:0] item_event;
  (* anyseq *) reg [2:0] item_kind;
  (* anyseq *) reg item_master;
  (* anyseq *) reg [7:0] item_gap;
  (* anyseq *) reg [15:0] item_gap_masters;
  // The decoder knows seven kinds of events.
  always @(*) assume (item_kind != 3'd7);

  record_stream #(
      .EVENT_BITS(7),
      .ID_BITS(1),
      .COUNT_BITS(8)
  ) dut (
      .clk(clk),
      .rst_n(rst_n),
      .start(start),
      .tick_cycles(tick_cycles),
      .item_valid(item_valid),
      .item_is_event(item_is_event),
      .item_time(item_time),
      .item_payload(item_payload),
      .item_event(item_event),
      .item_kind(item_kind),
      .item_master(item_master),
      .item_is_privileged(item_is_privileged),
      .item_has_gap(item_has_gap),
      .item_gap(item_gap),
      .item_gap_masters(item_gap_masters),
      .m_axis_tready(tready)
  );
endmodule
