// The queue with free inputs.
module queue (
    input clk
);
  (* anyseq *) reg rst_n, push_valid, item_take, event_left, clear_high_water;
  (* anyseq *) reg [1:0] policy;
  (* anyseq *) reg [31:0] stall_limit;
  (* anyseq *) reg [3:0] push_data;
  (* anyseq *) reg push_master;

  event_fifo #(
      .DEPTH_LOG2(2),
      .GAPS_LOG2(1),
      .BITS(4),
      .ID_BITS(1),
      .COUNT_BITS(4)
  ) dut (
      .clk(clk),
      .rst_n(rst_n),
      .policy(policy),
      .stall_limit(stall_limit),
      .push_valid(push_valid),
      .push_data(push_data),
      .push_master(push_master),
      .item_take(item_take),
      .event_left(event_left),
      .clear_high_water(clear_high_water)
  );
endmodule
