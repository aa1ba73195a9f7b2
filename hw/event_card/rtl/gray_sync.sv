// Carries a count to another clock in Gray code: between two neighbours one bit
// changes, so a sample is the count before or after the change, never a third
// number. The wires from `gray` to `first` must differ by less than a period of
// `from_clk` in delay (README.md, Constraints).
module gray_sync #(
    parameter int BITS = 64
) (
    input  logic            from_clk,
    input  logic            from_rst_n,
    input  logic [BITS-1:0] count_in,
    input  logic            to_clk,
    input  logic            to_rst_n,
    output logic [BITS-1:0] count_out
);
  logic [BITS-1:0] gray, first, second, binary;

  always_ff @(posedge from_clk) begin
    if (!from_rst_n) gray <= '0;
    else gray <= count_in ^ (count_in >> 1);
  end

  always_ff @(posedge to_clk) begin
    if (!to_rst_n) begin
      first     <= '0;
      second    <= '0;
      count_out <= '0;
    end else begin
      first     <= gray;
      second    <= first;
      count_out <= binary;
    end
  end

  // Each bit of the number is the parity of the Gray bits from it upwards.
  always_comb begin
    binary[BITS-1] = second[BITS-1];
    for (int i = BITS - 2; i >= 0; i--) binary[i] = binary[i+1] ^ second[i];
  end
`ifdef PROOFS
`include "gray_sync_properties.svh"
`endif
endmodule
