// The registers with free inputs.
module registers (
    input clk
);
  (* anyseq *) reg rst_n, write, read, tick_is_busy;
  (* anyseq *) reg [7:0] write_register, read_register;
  (* anyseq *) reg [31:0] write_data;
  (* anyseq *) reg [1:0] read_master;
  (* anyseq *) reg [63:0] now, written, lost;
  (* anyseq *) reg [2:0] level, high_water;

  card_registers #(
      .ID_BITS(2),
      .DEPTH_LOG2(2)
  ) dut (
      .clk(clk),
      .rst_n(rst_n),
      .write(write),
      .write_register(write_register),
      .write_data(write_data),
      .read(read),
      .read_register(read_register),
      .read_master(read_master),
      .tick_is_busy(tick_is_busy),
      .now(now),
      .level(level),
      .high_water(high_water),
      .written(written),
      .lost(lost)
  );
endmodule
