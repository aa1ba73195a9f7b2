// The Gray code with a free count.
module gray (
    input clk
);
  (* anyseq *) reg rst_n;
  (* anyseq *) reg [15:0] count;

  gray_sync #(
      .BITS(16)
  ) dut (
      .from_clk(clk),
      .from_rst_n(rst_n),
      .count_in(count),
      .to_clk(clk),
      .to_rst_n(rst_n)
  );
endmodule
